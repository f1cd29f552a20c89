"""Users whose order of items is to be learnt from a few of their ratings and the ratings of reference users."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from corank.collaborative import Collaborative, ItemMean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GROUPS = ((20, 40), (40, 60), (60, 80))
"""Numbers of ratings that the reference users of each group have given."""
TEST_COUNTS = (50, 300)
"""Numbers of ratings that users to be predicted have given."""
N_REFERENCE = 300


@dataclass(frozen=True, eq=False)
class Users:
    """
    Small ranking problems, one for each user, over one catalogue.

    train, test: items to learn from and to predict, user by user.
    train_starts, test_starts (B + 1,): where users begin.
    y, y_test: ratings; NaN for a training item whose rating is hidden.
    side: 0 or 1 for each training item: the view whose dictionary holds it.
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

        Returns: what a supervised method sees.
        """
        kept = ~np.isnan(self.y)
        starts = np.append(0, np.cumsum(np.bincount(self.train_user[kept], minlength=len(self)))).astype(np.int64)
        return replace(self, train=self.train[kept], train_starts=starts, y=self.y[kept], side=self.side[kept])

    def on_training_items(self) -> Users:
        """
        Have the scored training items predicted in place of the test items.

        Returns: the same problems to learn from.
        """
        known = self.scored()
        return replace(self, test=known.train, test_starts=known.train_starts, y_test=known.y)


@dataclass(frozen=True, eq=False)
class UsersRepeat:
    """
    One repeat: a catalogue as reference users see it, users to choose parameters on, and users to test on.

    distances (N, N): squared distances of the features, ratings by reference users, of all items that one of the users
        rated.
    halves: the same by the first and by the second half of the reference users: two views of an item.
    held_out, tested: problems to choose parameters on, and to report.
    community: CSR matrix of everybody else's ratings of the items.
    """

    distances: Floats
    halves: tuple[Floats, Floats]
    held_out: Users
    tested: Users
    community: Any

    @cached_property
    def item_mean(self) -> ItemMean:
        """What the community thinks of the items."""
        return ItemMean().fit(self.community)

    @cached_property
    def collaborative(self) -> Collaborative:
        """What the community likes together, too; parameters are chosen inside it."""
        return Collaborative(random_state=0).fit(self.community)

    @cached_property
    def nearest(self) -> float:
        """The least squared distance of two different items."""
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
    UsersRepeat one repeat.

    ratings (n_users, N): NaN where a user did not rate an item.
    group: least and greatest number of ratings of a reference user.
    n_held_out, n_tested: numbers of users.
    scored: share of the training ratings that are known, the others are hidden.
    rng: draws everything.
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
    """Turn NaN into nothing: a CSR matrix of the ratings that are there."""
    user, item = np.nonzero(~np.isnan(ratings))
    return sparse.csr_array((ratings[user, item].astype(np.float64), (user, item)), shape=ratings.shape)


def squared_distances(X: Floats) -> Floats:
    """With 0 between equal rows: rounding would leave a trace there, which a narrow kernel takes for a distance."""
    distances: Floats = euclidean_distances(X, squared=True)
    distances[distances < 1e-12 * distances.max()] = 0.0
    return distances


def _problems(ratings: NDArray[np.float32], users: Ints, scored: float, rng: np.random.Generator) -> Users:
    """Half of each user's ratings to learn from; of these only some known; both kinds dealt to two views."""
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
    """Say where each of some arrays begins when they stand one after the other."""
    return np.append(0, np.cumsum([len(part) for part in parts])).astype(np.int64)
