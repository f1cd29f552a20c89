"""Users whose ranking of items is learnt from a few of their ratings and the ratings of reference users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from corank.models.ratings import Collaborative, ItemMean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GROUPS = ((20, 40), (40, 60), (60, 80))
"""Numbers of ratings of the reference users in each group."""
TEST_COUNTS = (50, 300)
"""Numbers of ratings of the test users."""
N_REFERENCE = 300


@dataclass(frozen=True, eq=False)
class Users:
    """
    Small ranking problems, one for each user, over one catalogue.

    train, test: training and test items, grouped by user.
    train_starts, test_starts (B + 1,): first item of each user.
    y, y_test: ratings; NaN for a training item whose rating is hidden.
    side: 0 or 1 for each training item: the view whose dictionary contains it.
    """

    train: Ints
    train_starts: Ints
    y: Floats
    side: Ints
    test: Ints
    test_starts: Ints
    y_test: Floats

    def __len__(self) -> int:
        return len(self.train_starts) - 1

    @property
    def train_user(self) -> Ints:
        """User of each training item."""
        return np.repeat(np.arange(len(self)), np.diff(self.train_starts))

    @property
    def test_user(self) -> Ints:
        """User of each test item."""
        return np.repeat(np.arange(len(self)), np.diff(self.test_starts))

    def scored(self) -> Users:
        """
        Leave out training items whose rating is hidden.

        Returns: the problems for supervised methods.
        """
        kept = ~np.isnan(self.y)
        starts = np.append(0, np.cumsum(np.bincount(self.train_user[kept], minlength=len(self)))).astype(np.int64)
        return replace(self, train=self.train[kept], train_starts=starts, y=self.y[kept], side=self.side[kept])

    def on_training_items(self) -> Users:
        """
        Replace the test items by the scored training items.

        Returns: the same problems to learn from.
        """
        known = self.scored()
        return replace(self, test=known.train, test_starts=known.train_starts, y_test=known.y)


@dataclass(frozen=True, eq=False)
class UsersRepeat:
    """
    One repeat: distances of the items by reference users, users to choose parameters on, and test users.

    distances (N, N): squared distances of the features (ratings by reference users) of all items that some user rated.
    halves: the same by the first and by the second half of the reference users: two views of an item.
    held_out, tested: problems to choose parameters on, and to report.
    community: CSR matrix of all other users' ratings of the items.
    """

    distances: Floats
    halves: tuple[Floats, Floats]
    held_out: Users
    tested: Users
    community: Any

    @cached_property
    def item_mean(self) -> ItemMean:
        """`ItemMean` of the community."""
        return ItemMean().fit(self.community)

    @cached_property
    def collaborative(self) -> Collaborative:
        """`Collaborative` of the community, which chooses its parameters itself."""
        return Collaborative(random_state=0).fit(self.community)

    @cached_property
    def nearest(self) -> float:
        """The smallest squared distance of two distinct items."""
        return float(np.min(self.distances, where=self.distances > 0.0, initial=np.inf))


def draw_users(
    ratings: NDArray[np.float32],
    group: tuple[int, int],
    n_held_out: int,
    n_tested: int,
    scored: float,
    rng: np.random.Generator,
) -> UsersRepeat:
    """
    Draw one repeat.

    ratings (n_users, N): NaN if a user did not rate an item.
    group: least and greatest number of ratings of a reference user.
    n_held_out, n_tested: numbers of users.
    scored: share of the training ratings that are known, the others are hidden.
    rng: for all draws.
    """
    counts = (~np.isnan(ratings)).sum(axis=1)
    in_group = np.flatnonzero((counts >= group[0]) & (counts <= group[1]))
    reference = rng.choice(in_group, min(N_REFERENCE, len(in_group)), replace=False)
    others = np.setdiff1d(np.flatnonzero((counts >= TEST_COUNTS[0]) & (counts <= TEST_COUNTS[1])), reference)
    chosen = rng.choice(others, n_held_out + n_tested, replace=False)
    features = ratings[reference].astype(np.float64)
    features = np.where(np.isnan(features), np.nanmedian(features, axis=1)[:, None], features).T
    used = np.flatnonzero((~np.isnan(ratings[chosen])).any(axis=0))
    known, half = ratings[:, used], len(reference) // 2
    whole, first, second = (
        squared_distances(part) for part in (features[used], features[used, :half], features[used, half:])
    )
    return UsersRepeat(
        whole,
        (first, second),
        _problems(known, chosen[:n_held_out], scored, rng),
        _problems(known, chosen[n_held_out:], scored, rng),
        sparse_ratings(np.delete(known, chosen, axis=0)),
    )


def sparse_ratings(ratings: NDArray[np.float32]) -> Any:
    """CSR matrix of the ratings that are not NaN."""
    user, item = np.nonzero(~np.isnan(ratings))
    return sparse.csr_array((ratings[user, item].astype(np.float64), (user, item)), shape=ratings.shape)


def squared_distances(X: Floats) -> Floats:
    """Squared distances, exactly 0 between equal rows, where rounding errors would matter for a narrow kernel."""
    distances: Floats = euclidean_distances(X, squared=True)
    distances[distances < 1e-12 * distances.max()] = 0.0
    return distances


def _problems(ratings: NDArray[np.float32], users: Ints, scored: float, rng: np.random.Generator) -> Users:
    """Half of each user's ratings for training, a share of them known; both kinds are split into two views."""
    train, test, y, side = [], [], [], []
    for user in users:
        items = rng.permutation(np.flatnonzero(~np.isnan(ratings[user])))
        half = len(items) // 2
        known = ratings[user, items[:half]].astype(np.float64)
        known[int(np.ceil(scored * half)) :] = np.nan
        train.append(items[:half])
        test.append(items[half:])
        y.append(known)
        # items were shuffled, so that every second one is a random half of the scored and of the unscored
        side.append(np.arange(half) % 2)
    return Users(
        np.concatenate(train), starts_of(train), np.concatenate(y), np.concatenate(side), np.concatenate(test),
        starts_of(test), np.concatenate([ratings[user, items] for user, items in zip(users, test, strict=True)]).astype(
            np.float64
        ),
    )  # fmt: skip


def starts_of(parts: list[Ints]) -> Ints:
    """Start of each array in their concatenation."""
    return np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
