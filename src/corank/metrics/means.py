"""One plain function a metric: the mean over queries, for a notebook or `sklearn.metrics.make_scorer`."""

from __future__ import annotations

from numpy.typing import ArrayLike

from corank.metrics.conventions import Convention
from corank.metrics.evaluate import evaluate


def ndcg(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    k: int | None = 10,
    convention: str | Convention = "corank",
) -> float:
    """
    Normalised discounted cumulative gain, nDCG@k.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    k : int or None
        How many rows count; all if None.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    name = "nDCG" if k is None else f"nDCG@{k}"
    return evaluate(y, scores, qid, name, convention=convention)[name].mean


def mean_ndcg(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Mean over all depths k of nDCG@k.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "MeanNDCG", convention=convention)["MeanNDCG"].mean


def average_precision(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Average precision; its mean over queries is MAP.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "AP", convention=convention)["AP"].mean


def precision(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, k: int = 10, convention: str | Convention = "corank"
) -> float:
    """
    Share of relevant rows among the first k, P@k.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    k : int
        How many rows count.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    name = f"P@{k}"
    return evaluate(y, scores, qid, name, convention=convention)[name].mean


def reciprocal_rank(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Inverse rank of the first relevant row; its mean over queries is MRR.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "RR", convention=convention)["RR"].mean


def winner_take_all(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Whether the first row has the highest grade of its query.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "WTA", convention=convention)["WTA"].mean


def expected_reciprocal_rank(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    k: int | None = None,
    convention: str | Convention = "corank",
) -> float:
    """
    Expected reciprocal rank, ERR@k, on a scale that ends at the highest grade of y.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    k : int or None
        How many rows count; all if None.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    name = "ERR" if k is None else f"ERR@{k}"
    return evaluate(y, scores, qid, name, convention=convention)[name].mean


def break_even_point(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Precision at rank R, where it equals recall, for R relevant rows.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "BEP", convention=convention)["BEP"].mean


def auc(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Share of (relevant, irrelevant) pairs in the right order, a tie counting ½.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "AUC", convention=convention)["AUC"].mean


def disagreement_error(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Share of pairs of different grade in the wrong order, a tie counting ½.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "disagreement", convention=convention)["disagreement"].mean


def kpartite_error(
    y: ArrayLike,
    scores: ArrayLike,
    qid: ArrayLike | None = None,
    alpha: float = 1.0,
    convention: str | Convention = "corank",
) -> float:
    """
    k-partite error: wrongly ordered pairs, weighted by the distance of their grades to the power alpha.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    alpha : float
        Exponent, ≥ 0.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    name = f"kpartite(alpha={alpha!r})"
    return evaluate(y, scores, qid, name, convention=convention)[name].mean


def kendall_tau(
    y: ArrayLike, scores: ArrayLike, qid: ArrayLike | None = None, convention: str | Convention = "corank"
) -> float:
    """
    Kendall's τ-b between grades and scores.

    Parameters
    ----------
    y, scores, qid : array-like of shape (n_rows,)
        Grades, predicted scores and query ids, as in `evaluate`.
    convention : str or Convention
        How the name is read.

    Returns
    -------
    float
        The mean over queries.
    """
    return evaluate(y, scores, qid, "kendall", convention=convention)["kendall"].mean
