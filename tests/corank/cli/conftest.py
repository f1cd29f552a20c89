"""What the tests of the verbs share: a small collection, half of its queries unjudged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from corank.data.io.write import write_letor
from corank.data.splits import mask_scores
from corank.data.synthetic import SyntheticRanking, make_ranking


@pytest.fixture(scope="session")
def made() -> SyntheticRanking:
    """30 queries of 8 rows, 10 features in single precision."""
    made = make_ranking(30, 8, features_per_view=5, random_state=4)
    return type(made)(made.X.astype(np.float32), made.y, made.qid, made.utility, made.views, made.best)


@pytest.fixture(scope="session")
def y(made: SyntheticRanking) -> np.ndarray:
    """Scores, NaN in every second query."""
    return mask_scores(made.y, made.qid, fraction=0.5, by="query", random_state=0)


@pytest.fixture
def text(made: SyntheticRanking, y: np.ndarray, tmp_path: Path) -> Path:
    """The collection as LETOR text, -1 for unjudged rows."""
    comments = [f"docid = d{row}" for row in range(len(y))]
    write_letor(tmp_path / "rows.txt", made.X, np.where(np.isnan(y), -1, y), made.qid, comments=comments)
    return tmp_path / "rows.txt"
