"""evaluate_run: evaluate retrieved documents against judged documents, matched by name, as trec_eval does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from corank.data.collection import Dataset
from corank.data.io.run_objects import qrels_of, run_of
from corank.data.io.text import Source
from corank.data.io.trec import Qrels, Run, join_run, read_qrels, read_run
from corank.errors import InputError
from corank.metrics.conventions import Convention
from corank.metrics.evaluation import Evaluation, evaluate


def evaluate_run(
    qrels: Source | Qrels | Dataset | Any,
    run: Source | Run | Any,
    metrics: str | Sequence[str] = ("nDCG@10", "AP"),
    *,
    convention: str | Convention = "corank",
    n_jobs: int | None = None,
) -> Evaluation:
    """
    Evaluate a run against judgements, query by query.

    As in trec_eval, only queries in both files are evaluated, and judged documents that were not retrieved count for
    recall and ideal orders. Ids of queries and documents are compared as strings.

    Parameters
    ----------
    qrels : path, Qrels, Dataset or object of another library
        Judged documents: a TREC qrels file, the result of `corank.data.io.trec.read_qrels`, a collection with
        document ids, or what `corank.data.qrels_of` accepts: a dictionary, a DataFrame, ranx's `Qrels`.
    run : path, Run or object of another library
        Retrieved documents: a TREC run file, the result of `corank.data.io.trec.read_run`, or what
        `corank.data.run_of` accepts.
    metrics : str or sequence of str
        Names such as ``nDCG@10``; see `corank.metrics.names.parse_metric`.
    convention : str or Convention
        One of `corank.metrics.conventions.CONVENTIONS`, such as "trec_eval", or your own.
    n_jobs : int, optional
        Number of threads; all processors by default.

    Returns
    -------
    Evaluation
        Values per query, means and counts.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "qrels").write_text("q1 0 a 1\\nq1 0 b 0\\n")
    >>> _ = (folder / "run").write_text("q1 Q0 b 1 0.9 mine\\nq1 Q0 a 2 0.5 mine\\n")
    >>> evaluate_run(folder / "qrels", folder / "run", "RR", convention="trec_eval").means
    {'RR': 0.5}
    """
    run_name, qrels_name = (
        default if isinstance(source, Run | Qrels | Dataset) else _name(source)
        for source, default in ((run, "the run"), (qrels, "the qrels"))
    )
    run, qrels = run_of(run) if _is_object(run) else run, qrels_of(qrels) if _is_object(qrels) else qrels
    retrieved = run if isinstance(run, Run) else read_run(run)
    truth = qrels if isinstance(qrels, Qrels | Dataset) else read_qrels(qrels)
    if truth.docids is None or truth.qid is None:
        missing = "documents" if truth.docids is None else "queries"
        raise InputError(
            f"{qrels_name} has no ids of {missing}, so {run_name} cannot be matched; use evaluate with scores instead."
        )
    names = np.array([str(query) for query in truth.qid.tolist()], dtype=object)
    in_truth, in_run = set(names.tolist()), set(retrieved.qid.tolist())
    if not in_truth & in_run:
        raise InputError(f"{run_name} and {qrels_name} have no query in common; check that their query ids agree.")
    kept = np.array([query in in_truth for query in retrieved.qid.tolist()])
    judged = ~np.isnan(truth.y) & np.array([query in in_run for query in names.tolist()])
    joined = join_run(
        Run(retrieved.qid[kept], retrieved.docids[kept], retrieved.scores[kept], retrieved.tag),
        Qrels(names[judged], truth.docids[judged], truth.y[judged]),
    )
    n_missed = len(joined.missed_y)
    return evaluate(
        np.concatenate([joined.y, joined.missed_y]),
        np.concatenate([joined.scores, np.zeros(n_missed)]),
        np.concatenate([joined.qid, joined.missed_qid]),
        metrics,
        convention=convention,
        docids=np.concatenate([joined.docids, np.full(n_missed, "", dtype=object)]),
        retrieved=np.arange(len(joined.y) + n_missed) < len(joined.y),
        n_jobs=n_jobs,
    )


def _name(source: Any) -> str:
    return f"the {type(source).__name__}" if _is_object(source) else str(source)


def _is_object(source: Any) -> bool:
    """Return whether a run or judgements are an object of another library, and not a file."""
    if isinstance(source, Run | Qrels | Dataset):
        return False
    return isinstance(source, Mapping) or hasattr(source, "columns") or hasattr(source, "to_dict")
