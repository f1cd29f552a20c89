"""Light kernels give the same bits as Python code and compiled; small texts are parsed as the kernels parse them."""

import numpy as np
import pytest

from corank.core.jit import compile_kernels
from corank.core.lists import ranked
from corank.core.lists.top_k import BLOCK, EXPECTED, EXPONENTIAL, GIVEN, LINEAR, RELEVANT, top_gains
from corank.core.rows import blocks
from corank.core.rows.products import score_dense, score_small
from corank.data.formats.trec import read_scores
from corank.data.letor.reader import read_letor
from corank.errors import InputError

STARTS = np.array([0, 7, 7, 330, 400])
SCORES = np.random.default_rng(0).integers(0, 9, 400).astype(float)
GRADES = np.random.default_rng(1).integers(0, 4, 400).astype(float)


def both(kernel, *arguments, shape=(4,)):
    """The output of a kernel as Python code, and compiled."""
    compile_kernels()
    outputs = np.zeros(shape), np.zeros(shape)
    kernel.py_func(*arguments, outputs[0])
    kernel(*arguments, outputs[1])
    return [output.tobytes() for output in outputs]


@pytest.mark.parametrize("gain", [EXPONENTIAL, LINEAR, RELEVANT])
@pytest.mark.parametrize("ties", [EXPECTED, GIVEN])
def test_gains_of_the_first_rows(gain, ties):
    starts, discounts = STARTS.astype(np.uint64), 1.0 / np.log2(np.arange(2.0, 12.0))
    plain, compiled = both(top_gains, GRADES, SCORES, starts, 0, 4, discounts, gain, 1.0, ties, shape=(4, 2))
    assert plain == compiled


@pytest.mark.parametrize("ties", [EXPECTED, GIVEN, BLOCK])
def test_metrics_of_relevant_rows(ties):
    order = np.concatenate([a + np.argsort(-SCORES[a:b], kind="stable") for a, b in zip(STARTS, STARTS[1:])])  # noqa: B905, RUF007
    relevant, scores = GRADES[order] > 0, SCORES[order]
    plain, compiled = both(ranked.precision_sums, relevant, scores, STARTS, 0, 4, 300, ties, shape=(4, 2))
    assert plain == compiled
    weights = 1.0 / np.arange(1.0, 301.0)
    plain, compiled = both(ranked.first_relevant, relevant, scores, STARTS, 0, 4, weights, ties)
    assert plain == compiled
    plain, compiled = both(ranked.precision_at_r, relevant, scores, STARTS, 0, 4, ties)
    assert plain == compiled


def test_sorting_is_stable_and_puts_nan_last(monkeypatch):
    keys = np.random.default_rng(2).integers(0, 30, 400).astype(float)
    keys[::11] = np.nan
    keys[5] = -0.0
    orders = []
    for is_light in (True, False):
        monkeypatch.setattr(blocks, "is_light", lambda _, is_light=is_light: is_light)
        order = np.arange(400)
        blocks.sort_blocks(keys, order, STARTS, 0, 4)
        orders.append(order.tolist())
    expected = np.concatenate([a + np.argsort(keys[a:b], kind="stable") for a, b in zip(STARTS, STARTS[1:])])  # noqa: B905, RUF007
    assert orders == [expected.tolist()] * 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_do_not_depend_on_numba(dtype):
    rng = np.random.default_rng(3)
    X, w, out = rng.normal(size=(50, 37)).astype(dtype), rng.normal(size=37), np.empty(50)
    score_dense(X, w, out, 0, 50)
    assert score_small(X, w).tobytes() == out.tobytes()


TEXTS = [
    "2 qid:7 1:0.5 3:-1e-3 # docid = a\n0 qid:7 2:1\n\n# comment: 9:9\n1 qid:-8 1:123456789.123456789123 # b:c\n",
    "1 1:1 2:2\n-1 2:0.1",
    "1 qid:a 1:1\n",
    "1 qid:1 1:1\r\n0 qid:1 1:2\r\n",
    "1 qid:1:2 3:4\n",
    "+1.5e0 qid:3 1:.5 2:5.\n",
    "1 qid:3 12345678:1\n",
]
FAULTS = ["1 qid:1 2:1 1:1\n", "x qid:1 1:1\n", "1 qid:1 1:1e999\n", "1 qid:1 1:nan\n", "1 qid:1 0:1\n", "1e999 1:1\n"]


@pytest.mark.parametrize("text", TEXTS + FAULTS)
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_small_letor_text(tmp_path, monkeypatch, text, layout):
    path = tmp_path / "rows.txt"
    path.write_bytes(text.encode())
    found = []
    for is_light in (True, False):
        monkeypatch.setattr("corank.data.letor.pieces.is_light", lambda _, is_light=is_light: is_light)
        try:
            rows = read_letor(path, layout=layout if "12345678:" not in text else "csr")
        except InputError as error:
            found.append(str(error))
            continue
        X = rows.X if layout == "dense" and "12345678:" not in text else rows.X.tocoo().todense().A1[:100]
        docids = None if rows.docids is None else rows.docids.tolist()
        found.append((X.tobytes(), X.shape, rows.y.tolist(), None if rows.qid is None else rows.qid.tolist(), docids))
    assert found[0] == found[1]
    assert isinstance(found[0], str) == (text in FAULTS)


@pytest.mark.parametrize("text", ["1\n2.5\n\n-3e2", "1 2\n", "a\n", "1e999\n", "0.1\n12345678901234567890123\n"])
def test_small_file_of_scores(tmp_path, monkeypatch, text):
    path = tmp_path / "scores"
    path.write_text(text)
    found = []
    for is_light in (True, False):
        monkeypatch.setattr("corank.data.formats.trec.is_light", lambda _, is_light=is_light: is_light)
        try:
            found.append(read_scores(path).tolist())
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]
