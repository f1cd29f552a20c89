"""On a cluster of two processes: the bytes of one machine, whatever is killed, or one sentence."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from corank import CoRankRLS, QueryScaler, RankRLS, make_ranking
from corank.data import mask_scores, write_store
from corank.deploy.distributed import DaskEngine, Parts, fit_parts, pair_sums
from corank.errors import InputError
from helpers.kill import GO_ON, HELD, Dying, Held

distributed = pytest.importorskip("distributed")
PROBLEM = make_ranking(60, 12, random_state=0)
Y = mask_scores(PROBLEM.y, fraction=0.3, random_state=0)


def cut(*places):
    """The rows, cut at these places; a query has twelve."""
    return [(PROBLEM.X[rows], Y[rows], PROBLEM.qid[rows]) for rows in np.split(np.arange(len(Y)), places)]


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def alone():
    """What one machine makes of one part."""
    return bytes_of(pair_sums(cut(), CoRankRLS(random_state=0)))


def bytes_of(summary):
    arrays = (summary.scored.pair, summary.unscored.pair, np.array(summary.weights), summary.factors)
    return [array.tobytes() for array in arrays]


SEVEN = (50, 101, 305, 306, 500, 700)


@pytest.mark.long
@pytest.mark.parametrize("places", [(), (305,), SEVEN, (3, 8, 300, 300, 400)], ids=["1", "2", "7", "three a query"])
def test_sums_are_those_of_one_machine_to_the_byte(client, alone, places):
    parts = Parts(cut(*places), client)
    assert bytes_of(pair_sums(parts, CoRankRLS(random_state=0))) == alone
    assert len(parts.sources) == len(places) + 1


@pytest.mark.long
def test_the_order_of_parts_changes_no_byte(client, alone):
    whole = cut(*(12 * k for k in (7, 20, 31, 44, 50, 59)))
    for order in ((6, 2, 0, 5, 1, 4, 3), (3, 4, 5, 6, 0, 1, 2)):
        assert bytes_of(pair_sums([whole[at] for at in order], CoRankRLS(random_state=0), client)) == alone


@pytest.mark.long
@pytest.mark.parametrize("name", ["query ids", "straddling rows", "sums"])
def test_a_worker_killed_in_the_middle_changes_no_byte(client, alone, tmp_path, name):
    engine = Dying(client, name, tmp_path / "dead")
    assert bytes_of(pair_sums(cut(*SEVEN), CoRankRLS(random_state=0), engine)) == alone
    assert (tmp_path / "dead").exists()


@pytest.mark.long
def test_leave_query_out_chooses_as_on_one_machine(client):
    model = RankRLS(alphas=np.logspace(-4, 2, 7))
    whole = RankRLS(alphas=np.logspace(-4, 2, 7)).fit(PROBLEM.X, Y, qid=PROBLEM.qid)
    fit_parts(model, cut(*SEVEN), client)
    assert model.alpha_ == whole.alpha_
    assert model.alpha_from_ == whole.alpha_from_
    np.testing.assert_allclose(model.loo_scores_, whole.loo_scores_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)


@pytest.mark.long
def test_a_pipeline_is_that_of_one_machine(client):
    linear = [fit_parts(make_pipeline(QueryScaler(), RankRLS()), cut(*SEVEN), where) for where in (None, client)]
    assert linear[0][-1].coef_.tobytes() == linear[1][-1].coef_.tobytes()


@pytest.mark.long
def test_stores_frames_and_arrays_of_dask(client, alone, tmp_path):
    dask, array, frames = (pytest.importorskip(f"dask{name}") for name in ("", ".array", ".dataframe"))
    pandas = pytest.importorskip("pandas")
    for at, part in enumerate(cut(305)):
        write_store(tmp_path / f"{at}.store", *part)
    frame = pandas.DataFrame(PROBLEM.X, columns=[f"f{k}" for k in range(PROBLEM.X.shape[1])])
    frame = frame.assign(label=Y, qid=PROBLEM.qid)
    chunks = {"chunks": (305, -1)}
    many = {
        "a folder of stores": tmp_path,
        "delayed": [dask.delayed(part) for part in cut(305)],
        "frame": frames.from_pandas(frame, npartitions=3, sort=False),
        "array": (
            array.from_array(PROBLEM.X, **chunks),
            array.from_array(Y, chunks=305),
            array.from_array(PROBLEM.qid, chunks=305),
        ),
    }
    for what, parts in many.items():
        assert bytes_of(pair_sums(parts, CoRankRLS(random_state=0), client)) == alone, what


@pytest.mark.long
def test_a_part_that_cannot_be_read_is_named(client, tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.25\n")
    (tmp_path / "b.txt").write_text("1 qid:2 1:half\n")
    with pytest.raises(InputError, match=r"b\.txt"):
        fit_parts(RankRLS(), tmp_path, client)


@pytest.mark.long
def test_a_task_that_kills_every_worker_gets_one_sentence(client):
    client.run_on_scheduler(_allow, 0)
    try:
        with pytest.raises(InputError, match="every worker that ran the task sums"):
            pair_sums(cut(305), RankRLS(), Dying(client, "sums"))
    finally:
        client.run_on_scheduler(_allow, 3)


def _allow(failures, dask_scheduler):
    dask_scheduler.allowed_failures = failures


def test_a_cluster_without_workers_gets_one_sentence():
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        model = RankRLS()
        with pytest.raises(InputError, match="no worker for 1 seconds"):
            fit_parts(model, cut(305), DaskEngine(client, patience=1))
        assert not hasattr(model, "coef_")


@pytest.mark.long
def test_a_scheduler_that_is_lost_gets_one_sentence(monkeypatch):
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    cluster = distributed.LocalCluster(**options)
    client = distributed.Client(cluster)
    # a client that has lost its scheduler tries to reach it for this long
    known = pytest.importorskip("dask.config").config
    monkeypatch.setitem(known["distributed"]["comm"]["timeouts"], "connect", "1s")

    def close():
        HELD.wait()
        cluster.sync(cluster.scheduler.close)

    model, closing = RankRLS(), threading.Thread(target=close)
    closing.start()
    try:
        with pytest.raises(InputError, match="scheduler was lost"):
            fit_parts(model, cut(305), Held(client))
    finally:
        HELD.set()
        GO_ON.set()
        closing.join()
        client.close()
        cluster.close()
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("lost", [AttributeError("'NoneType' object has no attribute 'ncores'"), OSError("closed")])
def test_a_client_that_closes_between_two_looks_gets_one_sentence(monkeypatch, lost):
    """The connection of a closed client is None; its cache of workers is empty."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}

    def nthreads():
        raise lost

    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        monkeypatch.setattr(client, "nthreads", nthreads)
        with pytest.raises(InputError, match="scheduler was lost"):
            fit_parts(RankRLS(), cut(305), client)


def test_what_is_no_client_is_refused():
    with pytest.raises(InputError, match="client is of type int"):
        fit_parts(RankRLS(), cut(), 3)
