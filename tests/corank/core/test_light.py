"""Light kernels give the same bits as Python code and compiled; small texts are parsed as the kernels parse them."""

import subprocess
import sys
from types import FunctionType

import numpy as np
import pytest

from corank.core.exact_sums import Slots, add_pair_squares, fold
from corank.core.jit import PYTHON_ENTRIES, LazyFunction, _as_python, compile_kernels
from corank.core.lists import ranked
from corank.core.lists.ranked import BLOCK, EXPECTED, EXPONENTIAL, GIVEN, LINEAR, RELEVANT, top_gains
from corank.core.models.trees import measure_depths
from corank.core.pairs.inversions import pair_losses
from corank.core.pairs.losses import GradedBlock, squared_hinge_hessian_product, squared_hinge_loss
from corank.core.rows import blocks, products
from corank.core.rows.access import DenseRows
from corank.core.rows.blocks import FULL, HALF, HALF_T, INVERSE, Blocks, centre_blocks
from corank.core.rows.products import gather_rows, score_dense, score_rows, score_small
from corank.data.io.letor_reader import read_letor
from corank.data.io.trec import read_scores
from corank.errors import InputError

STARTS = np.array([0, 7, 7, 330, 400])
SCORES = np.random.default_rng(0).integers(0, 9, 400).astype(float)
GRADES = np.random.default_rng(1).integers(0, 4, 400).astype(float)


def compiled_of(kernel):
    """A kernel compiled by numba, however little it has run so far."""
    compile_kernels()
    return kernel.compiled if isinstance(kernel, LazyFunction) else kernel


def both(kernel, *arguments, shape=(4,)):
    """The output of a kernel as Python code, and compiled."""
    outputs = np.zeros(shape), np.zeros(shape)
    for run, output in zip((kernel.py_func, compiled_of(kernel)), outputs, strict=True):
        run(*arguments, output)
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


def test_tree_depths():
    starts, children = np.array([0, 2, 2, 3]), np.array([[1, -1], [-2, -3], [-1, -2]], dtype=np.int32)
    plain, compiled = in_both_ways(measure_depths, (starts, children, np.zeros(3, dtype=np.int64)))
    assert plain == compiled
    assert plain[0] == -1


def test_a_light_kernel_runs_as_python_until_it_has_visited_many_numbers(monkeypatch):
    def count(numbers):
        calls.append(len(numbers))
        return len(numbers)

    calls = []
    kernel = LazyFunction(count, {}, is_small=True)
    kernel.compiled = len
    monkeypatch.setattr("corank.core.jit._as_python", lambda function: function)
    half = np.zeros(PYTHON_ENTRIES // 2)
    assert [kernel(half) for _ in range(4)] == [len(half)] * 4
    assert len(calls) == 2  # the others were compiled
    large = LazyFunction(count, {}, is_small=True)
    large.compiled = len
    large(np.zeros(PYTHON_ENTRIES + 1))
    assert len(calls) == 2


def test_python_code_of_a_kernel_calls_no_compiled_kernel():
    compile_kernels()
    names = _as_python(squared_hinge_loss.py_func).__globals__
    assert isinstance(names["merge_sort"], FunctionType)
    assert isinstance(names["merge_sort"].__globals__["_is_after"], FunctionType)


def test_sorting_is_stable_and_puts_nan_last(monkeypatch):
    keys = np.random.default_rng(2).integers(0, 30, 400).astype(float)
    keys[::11] = np.nan
    keys[5] = -0.0
    orders = []
    for is_small in (True, False):
        monkeypatch.setattr(blocks, "is_small", lambda _, is_small=is_small: is_small)
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


def in_both_ways(kernel, arguments):
    """Results of a kernel, and all arrays that it may have changed, as Python code and compiled."""
    found = []
    for run in (kernel.py_func, compiled_of(kernel)):
        copies = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        result = run(*copies)
        found.append((result, [one.tobytes() for one in copies if isinstance(one, np.ndarray)]))
    return found


def blocks_of(is_weighted):
    """Queries of `STARTS` with runs of equal grades, as the Laplacian has them."""
    filled = STARTS[[0, 1, 3, 4]]
    rows = np.random.default_rng(4).permutation(400)
    runs = np.unique(np.concatenate([filled, np.arange(0, 400, 11)]))
    block_runs = np.searchsorted(runs, filled)
    weights = np.random.default_rng(5).uniform(0.1, 2.0, 400) if is_weighted else np.empty(0)
    keep, scale = np.random.default_rng(6).uniform(0.1, 1.0, (2, len(runs)))
    unsigned = [array.astype(np.uint64) for array in (rows, filled, runs, block_runs)]
    return Blocks(*unsigned, keep, weights, scale[:3])


@pytest.mark.parametrize("form", [FULL, HALF, HALF_T, INVERSE])
@pytest.mark.parametrize(("n_columns", "is_weighted"), [(1, False), (1, True), (3, True)])
def test_laplacians(form, n_columns, is_weighted):
    V = np.random.default_rng(7).normal(size=(400, n_columns))
    plain, compiled = in_both_ways(centre_blocks, (V, np.zeros_like(V), blocks_of(is_weighted), form, 0, 3))
    assert plain == compiled


def test_squared_hinge():
    rng = np.random.default_rng(8)
    y = np.concatenate([np.sort(rng.integers(0, 5, n)) for n in np.diff(STARTS)])
    parts = [np.unique(y[a:b], return_inverse=True)[1] for a, b in zip(STARTS, STARTS[1:])]  # noqa: B905, RUF007
    block = GradedBlock(STARTS, np.concatenate(parts), y.astype(float), rng.uniform(0.5, 2.0, 400))
    s, z = rng.normal(size=(2, 400))
    order, gradient, degree = np.zeros(400, dtype=np.int64), np.zeros(400), np.zeros(400)
    plain, compiled = in_both_ways(squared_hinge_loss, (block, s, 0, 4, order, gradient, degree))
    assert plain == compiled
    squared_hinge_loss(block, s, 0, 4, order, gradient, degree)
    plain, compiled = in_both_ways(squared_hinge_hessian_product, (block, s, z, 0, 4, order, degree, np.zeros(400)))
    assert plain == compiled


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_wrong_pairs(power):
    scores = np.concatenate([-np.sort(-SCORES[a:b]) for a, b in zip(STARTS, STARTS[1:])])  # noqa: B905, RUF007
    plain, compiled = in_both_ways(pair_losses, (GRADES, scores, STARTS, 0, 4, power, np.zeros((4, 3))))
    assert plain == compiled


def test_moments_and_spreads():
    rng = np.random.default_rng(9)
    X, order = rng.normal(size=(400, 3)), rng.permutation(400)
    query = np.repeat(np.arange(4), np.diff(STARTS))
    grade = np.where(rng.random(400) < 0.2, -1, np.arange(400) // 5)
    slots = Slots(rng.uniform(0.0, 2.0, 400), rng.uniform(0.0, 2.0, 400), query, grade)
    carried = (np.zeros(3), np.zeros((2, 3)), *(np.zeros((400, 3)) for _ in range(3)))
    plain, compiled = in_both_ways(fold, (X, slots, 0, *carried))
    assert plain == compiled
    plain, compiled = in_both_ways(add_pair_squares, (X, order, slots, 0, 400, np.zeros(3)))
    assert plain == compiled
    weights = rng.integers(0, 3, 400).astype(float)
    plain, compiled = in_both_ways(blocks.add_spread, (X, weights, order, STARTS, np.zeros((2, 3)), 0, 4))
    assert plain == compiled


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_chosen_rows(dtype, monkeypatch):
    rng = np.random.default_rng(10)
    rows, order = DenseRows(rng.normal(size=(50, 37)).astype(dtype)), rng.integers(0, 50, 30).astype(np.uint64)
    w, h = rng.normal(size=37), rng.integers(-1, 2, 30) * rng.normal(size=30)
    found = []
    for is_small in (True, False):
        monkeypatch.setattr(products, "is_small", lambda _, is_small=is_small: is_small)
        scores, sums = np.zeros(30), np.ones(37)
        score_rows(rows, order, w, scores, 2, 30)
        gather_rows(rows, order, h, sums, 2, 30)
        found.append((scores.tobytes(), sums.tobytes()))
    assert found[0] == found[1]
    np.testing.assert_allclose(scores[2:], rows.values[order[2:]].astype(float) @ w, rtol=1e-12)


FIT = """
import sys
import corank
from corank.core import jit
problem = corank.make_ranking(8, 8, random_state=0)
found = []
for _ in range(2):
    models = [kind().fit(problem.X, problem.y, qid=problem.qid) for kind in (corank.SPD, corank.RankRLS)]
    found.append([model.predict(problem.X).tobytes() for model in models])
    assert ("numba" in sys.modules) == (len(found) == 2)
    jit.PYTHON_ENTRIES = jit.SMALL_ENTRIES = 0
assert found[0] == found[1]
"""


@pytest.mark.long  # it may compile
def test_small_fits_need_no_numba_and_give_the_same_bits_with_it():
    subprocess.run([sys.executable, "-c", FIT], check=True)


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
    for is_small in (True, False):
        monkeypatch.setattr("corank.data.io.letor_pieces.is_small", lambda _, is_small=is_small: is_small)
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
    for is_small in (True, False):
        monkeypatch.setattr("corank.data.io.trec.is_small", lambda _, is_small=is_small: is_small)
        try:
            found.append(read_scores(path).tolist())
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]
