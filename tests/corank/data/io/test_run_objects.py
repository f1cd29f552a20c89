"""Runs and judgements survive the way to the objects of other libraries and back."""

from __future__ import annotations

import numpy as np
import pytest

import corank
from corank.data import as_dict, as_frame, qrels_of, run_of
from corank.errors import InputError

RUN = {"q1": {"d1": 0.5, "d2": 0.75, "d3": 0.1}, "q2": {"d1": 3.0}, "q3": {"d9": -1.0}}
QRELS = {"q1": {"d1": 1, "d3": 0, "d4": 2}, "q2": {"d1": 0, "d2": 1}}


def test_dictionaries_and_tables_survive():
    run, qrels = run_of(RUN), qrels_of(QRELS)
    assert as_dict(run) == RUN
    assert as_dict(qrels) == QRELS
    assert all(isinstance(grade, int) for found in as_dict(qrels).values() for grade in found.values())
    pytest.importorskip("pandas")
    for style in ("ir_measures", "pyterrier"):
        assert as_dict(run_of(as_frame(run, style))) == RUN
        assert as_dict(qrels_of(as_frame(qrels, style))) == QRELS


def test_other_libraries_compute_what_evaluate_run_computes():
    ours = corank.metrics.evaluate_run(QRELS, RUN, ["AP", "nDCG@2"], convention="trec_eval")
    ir_measures = pytest.importorskip("ir_measures")
    names = [ir_measures.AP, ir_measures.nDCG @ 2]
    for qrels, run in ((QRELS, RUN), (as_frame(qrels_of(QRELS)), as_frame(run_of(RUN)))):
        theirs = {(one.query_id, str(one.measure)): one.value for one in ir_measures.iter_calc(names, qrels, run)}
        for name in ("AP", "nDCG@2"):
            for query, value in zip(ours.query_ids, ours[name].values, strict=True):
                assert value == pytest.approx(theirs[query, name], abs=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # of numba, inside ranx
def test_objects_of_ranx_are_taken():
    ranx = pytest.importorskip("ranx")
    run, qrels = ranx.Run({q: dict(d) for q, d in RUN.items()}), ranx.Qrels({q: dict(d) for q, d in QRELS.items()})
    assert as_dict(run_of(run)) == RUN
    ours = corank.metrics.evaluate_run(qrels, run, "RR", convention="trec_eval").means["RR"]
    kept = ranx.Run({q: RUN[q] for q in QRELS})
    assert ours == pytest.approx(ranx.evaluate(qrels, kept, "mrr"))


def test_what_is_not_a_run_gets_a_sentence():
    with pytest.raises(InputError, match=r"found a dict; pass \{query"):
        run_of({"q1": 3})
    with pytest.raises(InputError, match="the run has no rows"):
        run_of({})
    with pytest.raises(InputError, match="style is 'x'"):
        as_frame(run_of(RUN), "x")
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="no column of documents"):
        run_of(pandas.DataFrame({"qid": ["a"], "score": [1.0]}))


def test_unjudged_documents_are_left_out():
    qrels = corank.data.Qrels(np.array(["a", "a"], object), np.array(["x", "y"], object), np.array([np.nan, 1.0]))
    assert as_dict(qrels) == {"a": {"y": 1}}
