"""Parts on this machine: queries made whole, sums against `Moments` and fits against those of all rows at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from corank import SPD, CoRankRLS, LambdaRank, QueryScaler, RankingData, RankRLS, make_ranking
from corank.base.pairs import Moments
from corank.data import mask_scores, write_letor, write_store
from corank.data.columns import column_factors
from corank.data.io.write import write_parquet
from corank.deploy.distributed import (
    LocalEngine,
    Parts,
    fit_parts,
    pair_sums,
    predict_parts,
)
from corank.deploy.distributed.tasks import SumSettings, sum_part
from corank.errors import InputError

PROBLEM = make_ranking(40, 12, random_state=0)
X = PROBLEM.X * np.geomspace(0.01, 100, PROBLEM.X.shape[1]) + 3.0
Y = mask_scores(PROBLEM.y, fraction=0.5, random_state=0)
QID = PROBLEM.qid


def pieces(*places, rows=None):
    order = np.arange(len(Y)) if rows is None else rows
    return [(X[part], Y[part], QID[part]) for part in np.split(order, places)]


def sums_of(parts, **wanted):
    wanted = SumSettings(**{"unscored": True, **wanted})
    sums = parts.summed(sum_part, wanted, "sums")
    return [one.value.tobytes() for one in (sums.pair, sums.unscored, sums.weights, sums.spread.sums)], sums


@pytest.mark.parametrize("query_weight", ["pairs", "equal", "rows"])
@pytest.mark.parametrize("ties", [False, True])
def test_sums_are_those_of_moments(query_weight, ties):
    _, sums = sums_of(Parts(pieces(30, 200)), query_weight=query_weight, ties=ties)
    scored, unscored = sums.moments()
    data = RankingData.of(X, Y, QID)
    whole = Moments.of(data, query_weight=query_weight, ties=ties)
    beside = Moments.of(data, rows="unscored", query_weight=query_weight)
    size = np.sqrt(np.outer(np.diag(whole.pair), np.diag(whole.pair)))
    assert (abs(scored.pair - whole.pair) <= 1e-13 * size).all()
    size = np.sqrt(np.outer(np.diag(beside.pair), np.diag(beside.pair)))
    assert (abs(unscored.pair - beside.pair) <= 1e-13 * size).all()
    np.testing.assert_allclose([scored.pair_weight, unscored.pair_weight], [whole.pair_weight, beside.pair_weight])
    np.testing.assert_allclose(sums.spread.factors, column_factors(data), rtol=1e-13)


@given(st.lists(st.integers(0, len(Y)), max_size=6), st.randoms())
@settings(max_examples=20)
def test_no_cut_and_no_order_of_queries_changes_a_byte(places, random):
    whole, _ = sums_of(Parts(pieces()))
    assert sums_of(Parts(pieces(*sorted(places))))[0] == whole
    queries = random.sample(range(40), 40)
    shuffled = np.concatenate([np.flatnonzero(np.unique(QID)[query] == QID) for query in queries])
    assert sums_of(Parts(pieces(*sorted(places), rows=shuffled)))[0] == whole


def test_a_query_longer_than_a_block_is_summed_from_its_beginning():
    rng = np.random.default_rng(0)
    long, d = 3 * (1 << 18) // 4, 3
    Z, y = rng.normal(size=(long + 100, d)), rng.integers(0, 3, long + 100).astype(float)
    qid = np.repeat([5, 7], [100, long])
    found = []
    for rows in (slice(None), np.roll(np.arange(len(y)), -100)):
        sums = Parts([(Z[rows], y[rows], qid[rows])]).summed(sum_part, SumSettings(), "sums")
        found.append(sums.pair.value.tobytes())
    assert found[0] == found[1]
    whole = Moments.of(RankingData.of(Z, y, qid)).pair
    np.testing.assert_allclose(sums.moments()[0].pair, whole, rtol=1e-10, atol=1e-10 * whole.max())


def test_a_straddling_query_moves_to_the_part_that_holds_most_of_it():
    ids = np.array([1, 1, 2, 2, 2, 3, 3, 2, 3, 3, 9])
    cut = [slice(0, 4), slice(4, 7), slice(7, 11)]
    rows = np.arange(11.0)[:, None]
    parts = Parts([(rows[part], rows[part, 0], ids[part]) for part in cut])
    # query 2 has two rows in the first part; query 3 two in the second and two in the third: the lower number
    assert parts.n_straddling == 2
    handles = parts.over(_queries_of, None, "queries")
    assert handles == [{1: [0, 1], 2: [2, 3, 4, 7]}, {3: [5, 6, 8, 9]}, {9: [10]}]
    assert parts.passes[-1].name == "straddling rows"
    assert parts.passes[-1].bytes_moved == 4 * 3 * 8


def _queries_of(problems, settings):
    found = {}
    for problem in problems:
        queries = problem.data.queries
        for code, query in enumerate(queries.ids.tolist()):
            own = np.flatnonzero(queries.codes == code)
            assert problem.data.X[own, 0].tolist() == problem.numbers[own].tolist()
            found[query] = problem.numbers[own].tolist()
    return found


def test_split_refuse_names_the_query():
    with pytest.raises(InputError, match="has rows in part 0 and part 1"):
        fit_parts(RankRLS(), Parts(pieces(30), split="refuse"))
    fit_parts(RankRLS(), Parts(pieces(36), split="refuse"))


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(),
        RankRLS(0.3, ties=True, query_weight="equal", scale=False),
        RankRLS(alphas=[0.01, 0.1, 1.0, 10.0]),
        RankRLS(alphas=[0.01, 1.0], metric="AP", query_weight="rows"),
        RankRLS(kernel="gaussian", n_basis=20, random_state=3),
        RankRLS(kernel="gaussian", n_basis=20, random_state=3, scale=False),
        RankRLS(kernel="gaussian", n_basis=20, random_state=3, alphas=[1e-4, 0.01, 1.0], ties=True),
        CoRankRLS(random_state=0),
        CoRankRLS(views=[[0, 1, 2], [2, 3]], coupling=2.0),
        CoRankRLS(alphas=[0.1, 1.0], couplings=[0.0, 0.1], random_state=1),
        CoRankRLS(kernel="gaussian", n_basis=15, random_state=3),
        CoRankRLS(kernel="gaussian", n_basis=15, random_state=3, couplings=[0.01, 1.0], query_weight="equal"),
    ],
    ids=str,
)
def test_a_fit_to_parts_is_the_fit_to_all_rows(model):
    whole = clone(model).fit(X, Y, qid=QID)
    found = [fit_parts(clone(model), pieces(*places)) for places in ((), (30, 31, 31, 200))]
    scores = [one.predict(X) for one in found]
    if getattr(model, "n_basis", None) is None:
        assert scores[0].tobytes() == scores[1].tobytes()
    else:  # the last bits of a kernel's values depend on how many rows BLAS is given at once
        np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9, atol=1e-12)
    names = {name for name in vars(whole) if name.endswith("_")}
    assert {name for name in vars(found[1]) if name.endswith("_")} == names
    np.testing.assert_allclose(found[1].predict(X), whole.predict(X), rtol=1e-9, atol=1e-10)
    for name in names:
        one, other = getattr(found[1], name), getattr(whole, name)
        if name == "loo_scores_":
            np.testing.assert_allclose(one, other, rtol=1e-12)
        if isinstance(other, float | int | str):
            assert one == (other if isinstance(other, str) else pytest.approx(other, rel=1e-9, nan_ok=True)), name


def test_files_of_every_kind_and_parts_without_rows(tmp_path):
    (tmp_path / "empty.txt").touch()
    kinds = {"parquet": write_parquet, "store": write_store}
    for kind, write in kinds.items():
        (tmp_path / kind).mkdir()
        for at, part in enumerate(pieces(1, 305)):  # one row in the first
            write(tmp_path / kind / f"{at}.{kind}", *part)
    (tmp_path / "letor").mkdir()
    for at, part in enumerate(pieces(1, 305)):
        write_letor(tmp_path / "letor" / f"{at}.txt", part[0], np.nan_to_num(part[1], nan=-1), qid=part[2])
    models = [fit_parts(RankRLS(), [tmp_path / kind, tmp_path / "empty.txt"]) for kind in kinds]
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes() == fit_parts(RankRLS(), pieces()).coef_.tobytes()
    text = fit_parts(RankRLS(), Parts([tmp_path / "letor", (np.empty((0, 10)), [], [])], unjudged=-1))
    np.testing.assert_allclose(text.predict(X), models[1].predict(X), atol=1e-3)


def test_addresses_that_fsspec_reads(tmp_path):
    pytest.importorskip("fsspec")
    for at, part in enumerate(pieces(100)):
        write_store(tmp_path / f"{at}.store", *part)
        write_parquet(tmp_path / f"{at}.parquet", *part)
    whole = fit_parts(RankRLS(), pieces()).coef_.tobytes()
    for kind in ("store", "parquet"):
        parts = [f"file://{tmp_path}/{at}.{kind}" for at in (0, 1)]
        assert fit_parts(RankRLS(), parts).coef_.tobytes() == whole
    (tmp_path / "folder").mkdir()
    (tmp_path / "0.parquet").rename(tmp_path / "folder" / "0.parquet")
    (tmp_path / "1.parquet").rename(tmp_path / "folder" / "1.parquet")
    assert fit_parts(RankRLS(), f"file://{tmp_path}/folder").coef_.tobytes() == whole
    with pytest.raises(InputError, match="cannot be read"):
        fit_parts(RankRLS(), f"file://{tmp_path}/nothing.parquet")


def test_letor_text_whose_last_features_are_absent_from_a_part(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:0.5 3:1\n0 qid:1 1:0.25\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:0.5\n0 qid:2 1:0.75\n")
    assert fit_parts(RankRLS(), tmp_path).n_features_in_ == 3


def test_sparse_rows_are_summed_as_dense_ones_are():
    many = [(sparse.csr_matrix(a), b, c) for a, b, c in pieces(100)]
    assert fit_parts(RankRLS(), many).coef_.tobytes() == fit_parts(RankRLS(), pieces()).coef_.tobytes()


def test_more_columns_than_are_summed_to_the_byte():
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(len(Y), 250))
    cut = [(wide[part], Y[part], QID[part]) for part in np.split(np.arange(len(Y)), [100, 333])]
    whole = RankRLS().fit(wide, Y, qid=QID)
    np.testing.assert_allclose(fit_parts(RankRLS(), cut).predict(wide), whole.predict(wide), rtol=1e-8, atol=1e-10)


def test_text_ids_of_any_length():
    names = np.array([f"query {query}" for query in QID], dtype=object)
    cut = [(X[part], Y[part], names[part]) for part in np.split(np.arange(len(Y)), [30, 100])]
    assert fit_parts(RankRLS(), cut).coef_.tobytes() == fit_parts(RankRLS(), pieces()).coef_.tobytes()


def test_summarise_takes_maps_and_fit_summary_solves():
    summary = RankRLS(scale=False).pair_sums(X, Y, qid=QID)
    found = pair_sums(pieces(100), summary.maps)
    np.testing.assert_allclose(found.scored.pair, summary.scored.pair, rtol=1e-10, atol=1e-9)
    assert (
        RankRLS(scale=False).fit_pair_sums(found).coef_.tobytes()
        == fit_parts(RankRLS(scale=False), pieces()).coef_.tobytes()
    )


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "parts is empty"),
        ([(X[:2], Y[:2], None)], "has no query ids"),
        ([(X[:2], Y[:2], [1, 1]), (X[:2], Y[:2], ["a", "b"])], "query ids that are integers, but part 1 has query ids"),
        (
            [(X[:2], Y[:2], [1, 1]), (X[:2, :3], Y[:2], [2, 2])],
            f"part 0 has {X.shape[1]} columns, but part 1 has 3",
        ),
        ([(X[:2], Y[:2], [1])], "qid has 1 values for 2 rows"),
        ([(X[:2], Y[:2], np.array([7, "7"], dtype=object))], "neither numbers nor text"),
        ([(np.empty((0, 3)), [], [])], "all 1 parts are empty"),
        ([(X[:1], [1.0], [1]), (X[:1], [2.0], [2])], "no part of the summary holds two scored rows"),
        ([7], "a part is of type int"),
        ("no such folder", "the part no such folder does not exist"),
    ],
)
def test_what_cannot_be_learnt_from_gets_one_sentence(parts, said):
    model = RankRLS()
    with pytest.raises(InputError, match=said):
        fit_parts(model, parts)
    assert not hasattr(model, "coef_")


def test_columns_of_other_names_get_one_sentence(tmp_path):
    write_parquet(tmp_path / "a.parquet", X[:5], Y[:5], qid=QID[:5])
    write_parquet(tmp_path / "b.parquet", X[:5], Y[:5], qid=QID[:5], names=[f"g{k}" for k in range(X.shape[1])])
    with pytest.raises(InputError, match=r"a\.parquet has 'f1' as column 1"):
        fit_parts(RankRLS(), tmp_path)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LambdaRank(), "LambdaRank cannot be fitted to parts"),
        (SPD(loss="squared"), "SPD cannot be fitted to parts"),
        (RankRLS(kernel="gaussian"), "set n_basis"),
        (RankRLS(kernel="gaussian", n_basis=5, basis="kmeans++"), "must be random"),
        (RankRLS(alphas=[1.0], metric="evidence"), "evidence"),
    ],
    ids=str,
)
def test_models_that_parts_cannot_teach(model, said):
    with pytest.raises(InputError, match=said):
        fit_parts(model, pieces(100))


def test_lazy_parts_are_computed_one_at_a_time():
    dask = pytest.importorskip("dask")
    lazy = [dask.delayed(part) for part in pieces(100)]
    assert fit_parts(RankRLS(), lazy).coef_.tobytes() == fit_parts(RankRLS(), pieces()).coef_.tobytes()


def test_an_engine_is_three_methods():
    class Counting(LocalEngine):
        names: list[str] = []  # noqa: RUF012

        def map(self, function, *columns, name):
            self.names.append(name)
            return super().map(function, *columns, name=name)

    fit_parts(RankRLS(), pieces(100), Counting())
    assert Counting.names == ["query ids", "straddling rows", "rows to move", "bytes moved", "sums"]


def test_scores_are_those_of_all_rows():
    model = RankRLS().fit(X, Y, qid=QID)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(Y))
    parts = Parts(pieces(50, 300, rows=rows))
    np.testing.assert_allclose(predict_parts(model, parts), model.predict(X[rows]), rtol=1e-12, atol=1e-13)


def test_files_and_frames_of_one_table_teach_the_same(tmp_path):
    """Frames leave docid out as files do; a table of names alone is empty, and a README is no part."""
    pandas = pytest.importorskip("pandas")
    made = make_ranking(6, 5, features_per_view=5, random_state=0)
    table = pandas.DataFrame(made.X, columns=[f"f{j}" for j in range(made.X.shape[1])])
    table = table.assign(label=made.y, qid=made.qid, docid=np.arange(len(made.y)))
    frames = [table[:13], table[13:]]
    for number, frame in enumerate(frames):
        frame.to_csv(tmp_path / f"{number}.csv", index=False, float_format="%.17g")
    table[:0].to_csv(tmp_path / "9.csv", index=False)
    (tmp_path / "README").write_text("Rows of queries.\n")
    of_frames, of_files = fit_parts(RankRLS(), frames), fit_parts(RankRLS(), tmp_path)
    assert of_frames.n_features_in_ == made.X.shape[1]
    assert of_frames.coef_.tobytes() == of_files.coef_.tobytes()


NAMES = [f"column {k}" for k in range(X.shape[1])]


def named_parts(tmp_path, kind, names=NAMES):
    """Two parts whose columns have names, as frames or as files."""
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(part[0], columns=names).assign(label=part[1], qid=part[2]) for part in pieces(305)]
    if kind == "frame":
        return frames
    paths = [tmp_path / f"{at}-{names[0]}.{kind}" for at in range(len(frames))]
    for path, frame in zip(paths, frames, strict=True):
        if kind == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
    return paths


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_a_model_of_named_parts_remembers_the_names_and_refuses_other_columns(tmp_path, kind):
    pandas = pytest.importorskip("pandas")
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    parts = named_parts(tmp_path, kind)
    model = fit_parts(RankRLS(), parts)
    assert model.feature_names_in_.tolist() == NAMES
    frame = pandas.DataFrame(X, columns=NAMES)
    np.testing.assert_allclose(predict_parts(model, parts), model.predict(frame), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[NAMES[::-1]])
    permuted = named_parts(tmp_path, kind, NAMES[::-1])
    with pytest.raises(InputError, match="the parts have 'column 19' as column 1"):
        predict_parts(model, permuted)
    with pytest.raises(InputError, match="the parts have 19 columns"):
        predict_parts(model, [(frame[NAMES[1:]], Y, QID)])


def test_a_failed_fit_leaves_model_and_steps_untouched():
    model = fit_parts(make_pipeline(QueryScaler(), RankRLS()), pieces(305))
    before = [dict(vars(step)) for _, step in model.steps]
    with pytest.raises(InputError):
        fit_parts(model, [(X[:, :4], np.zeros(len(X)), QID)])
    for attributes, (_, step) in zip(before, model.steps, strict=True):
        assert attributes.keys() == vars(step).keys()
        assert all(value is vars(step)[name] for name, value in attributes.items())
