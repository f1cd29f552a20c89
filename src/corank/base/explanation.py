"""
Explanation: exact contributions of columns or training rows to the difference of two scores.

A linear model scores by Σ_j w_j x_j, a kernel model or pursuit by Σ_t c_t k(x, z_t) over training rows z_t. The
contribution of a column to f(a) − f(b) is w_j (a_j − b_j), that of a training row c_t (k(a, z_t) − k(b, z_t)), and the
prior is one contribution. No approximation is made; models that are not such sums raise `InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from corank.base.base import Ranker
from corank.base.contract import filling_of
from corank.base.kernels.basis import Terms
from corank.data.queries import Queries
from corank.data.routing import predict_with_qid, transform_with_qid
from corank.data.rows import NamedRows, as_rows, encode_like, take_rows
from corank.errors import InputError, import_extra, warn
from corank.parameters import is_integer

Floats = NDArray[np.float64]

# default number of contributions shown
SHOWN = 10
# relative rounding error of contributions
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """
    Contributions to the difference of two scores, largest absolute value first.

    names: Source of each contribution: a column, a training row, or the prior.
    values: Values of the two rows at the last step of a pipeline: of a column, or similarities.
    weights: Weights of the values.
    contributions: Weight times the first value minus the second; they sum to `difference`.
    scores: Predicted scores.
    pair: Names of the two rows.
    """

    names: tuple[str, ...]
    values: Floats
    weights: Floats
    contributions: Floats
    scores: tuple[float, float]
    pair: tuple[str, str] = ("a", "b")

    @property
    def difference(self) -> float:
        """The first score minus the second."""
        return self.scores[0] - self.scores[1]

    def table(self, top: int = SHOWN) -> list[tuple[str, float | None, float | None, float | None, float]]:
        """List the largest contributions, the sum of the others, and the total."""
        numbers = np.column_stack([self.values, self.weights, self.contributions])[:top].tolist()
        rows: list[Any] = [(name, *row) for name, row in zip(self.names[:top], numbers, strict=True)]
        others = len(self.names) - len(rows)
        if others > 0:
            rows.append((f"{others} others", None, None, None, float(self.contributions[top:].sum())))
        return [*rows, ("sum", None, None, None, float(self.contributions.sum()))]

    def to_frame(self) -> Any:
        """Return all contributions as a data frame (extra `frames`)."""
        pandas = import_extra("pandas", "frames")
        first, second = self.pair if self.pair[0] != self.pair[1] else ("first", "second")
        columns = {first: self.values[:, 0], second: self.values[:, 1]}
        return pandas.DataFrame(
            {"name": self.names, **columns, "weight": self.weights, "contribution": self.contributions}
        )

    def plot(self, ax: Any = None, top: int = SHOWN) -> Any:
        """Draw the largest contributions as bars, positive ones favour the first row (extra `report`)."""
        pyplot = import_extra("matplotlib.pyplot", "report")
        rows = self.table(top)[:-1]
        ax = pyplot.subplots(figsize=(6.4, 1.4 + 0.28 * len(rows)), layout="constrained")[1] if ax is None else ax
        lengths = [row[-1] for row in rows]
        colours = ["0.75" if row[1] is None else "C0" if row[-1] >= 0 else "C1" for row in rows]
        bars = ax.barh(range(len(rows)), lengths, color=colours)
        ax.bar_label(bars, [f"{length:+.3g}" for length in lengths], padding=3, fontsize="small")
        # names are not formulas
        ax.set_yticks(range(len(rows)), [row[0].replace("$", r"\$") for row in rows])
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        ax.margins(x=0.15)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(left=False)
        first, second = (name.replace("$", r"\$") for name in self.pair)
        ax.set_xlabel(f"contribution to the lead of {first} over {second}")
        ax.set_title(f"{first} {self.scores[0]:.4g}, {second} {self.scores[1]:.4g}: {self.difference:+.4g}", loc="left")
        return ax

    def __repr__(self) -> str:
        first, second = self.pair
        head = f"{first} {self.scores[0]:.4g}, {second} {self.scores[1]:.4g}: a difference of {self.difference:+.4g}"
        cells = [("", first, second, "weight", "contribution"), *map(_texts, self.table())]
        widths = [max(len(row[i]) for row in cells) for i in range(5)]
        lines = (
            row[0].ljust(widths[0])
            + "".join(f"  {text:>{width}}" for text, width in zip(row[1:], widths[1:], strict=True))
            for row in cells
        )
        return "\n".join([head, *map(str.rstrip, lines)])

    def _repr_html_(self) -> str:
        def line(tag: str, row: tuple[str, ...]) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in row)}</tr>"

        rows = "".join(line("td", _texts(row)) for row in self.table())
        head = repr(self).splitlines()[0]
        names = line("th", ("", *self.pair, "weight", "contribution"))
        return f"<table><caption>{escape(head)}</caption><thead>{names}</thead><tbody>{rows}</tbody></table>"


def explain(
    model: Any,
    X: Any,
    pair: Sequence[int],
    *,
    qid: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Explanation:
    """
    Explain exactly why a model scores one row above another.

    Parameters
    ----------
    model : Ranker or Pipeline
        A fitted linear or kernel ranker, a pursuit, a Gaussian process, a linear scikit-learn regressor, a search over
        these, or a pipeline that ends in one. Trees and neural networks raise `InputError`, as they are not additive.
    X : array-like, CSR matrix or DataFrame, shape (n_rows, n_features)
        Rows; whole queries if a score depends on the other rows of its query.
    pair : tuple of two int
        Numbers of the two rows in X.
    qid, prior : array-like of shape (n_rows,), optional
        As in the model's ``predict``.
    names : sequence of str, optional
        Names of the columns of X; by default those of a data frame.

    Returns
    -------
    Explanation
        Contributions that sum to the difference of the two scores.

    Examples
    --------
    >>> from corank import SPD
    >>> model = SPD("squared", alpha=1e-9).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 1, 3])
    >>> explain(model, [[5.0, 1.0], [3.0, 3.0]], (0, 1), names=["clicks", "age"])
    row 0 8, row 1 6: a difference of +2
            row 0  row 1  weight  contribution
    clicks      5      3     1.5            +3
    age         1      3     0.5            -1
    sum                                     +2
    """
    return explained(model, X, pair, qid=qid, prior=prior, names=names)


def explained(
    model: Any,
    X: Any,
    pair: Sequence[int],
    *,
    qid: ArrayLike | None = None,
    prior: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    row_names: tuple[str, str] | None = None,
    first_row: int = 0,
) -> Explanation:
    """Explain as `explain`, with names and numbers of rows chosen by the caller."""
    if not hasattr(model, "predict"):
        raise InputError(f"model is a {type(model).__name__}, which has no predict; pass a fitted ranker or pipeline.")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    a, b = _checked(pair, n_rows)
    columns = getattr(X, "columns", None) if names is None else names
    row_names = row_names or (f"row {a}", f"row {b}")
    needed, positions = _rows_needed(model, (a, b), qid, n_rows, row_names)
    rows, ids = take_rows(X, needed), None if qid is None else take_rows(qid, needed)
    rows = encode_like(rows, getattr(model, "feature_names_in_", None))
    columns = rows.names if names is None and isinstance(rows, NamedRows) else columns
    prior_scores = None if prior is None else np.asarray(prior, dtype=np.float64)[needed]
    scores = predict_with_qid(model, rows, ids, prior_scores)[positions].tolist()
    terms, columns = _terms(model, rows, ids, positions, columns)
    if prior_scores is not None:
        terms = [Terms.of_prior(prior_scores[positions]), *terms]
    labels = [name for term in terms for name in _labels(term, columns, first_row)]
    weights = np.concatenate([term.weights for term in terms])
    values = np.concatenate([term.values for term in terms], axis=1).T
    parts = weights * (values[:, 0] - values[:, 1])
    _require_sum(model, parts, weights @ values, scores)
    order = np.argsort(-np.abs(parts), kind="stable")
    return Explanation(
        tuple(labels[t] for t in order), values[order], weights[order], parts[order], (scores[0], scores[1]), row_names
    )


def _checked(pair: Any, n_rows: int) -> tuple[int, int]:
    numbers = list(pair) if np.ndim(pair) == 1 else []
    if len(numbers) != 2 or not all(is_integer(row) and 0 <= row < n_rows for row in numbers):
        raise InputError(f"pair is {pair!r}; pass two row numbers from 0 to {n_rows - 1}.")
    return int(numbers[0]), int(numbers[1])


def _rows_needed(
    model: Any, pair: tuple[int, int], qid: ArrayLike | None, n_rows: int, row_names: tuple[str, str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that the scores of two rows depend on, and the positions of the two among them."""
    if qid is not None:
        codes = Queries.of(qid, n_rows).codes
        if codes[pair[0]] != codes[pair[1]]:
            warn(
                f"{row_names[0]} and {row_names[1]} belong to different queries, whose scores may not be comparable; "
                "explain two rows of one query."
            )
    with config_context(enable_metadata_routing=True):
        needs_qid = bool(get_routing_for_object(_best(model)).consumes("predict", ["qid"]))
    if not needs_qid:
        return np.array(pair), np.array([0, 1])
    kept = np.arange(n_rows) if qid is None else np.flatnonzero(np.isin(codes, codes[list(pair)]))
    return kept, np.searchsorted(kept, pair)


def _terms(
    model: Any, X: Any, qid: ArrayLike | None, positions: NDArray[np.int64], columns: Any
) -> tuple[list[Terms], Sequence[str] | None]:
    """Return the terms of the last step of a model, and the names of its columns."""
    model = _best(model)
    if isinstance(model, Pipeline):
        first, last = model[:-1], model[-1]
        if len(first):
            X, columns = transform_with_qid(first, X, qid), _names_out(first, X, columns)
        return _terms(last, X, qid, positions, columns)
    if columns is None:
        columns = getattr(model, "feature_names_in_", None)
    if isinstance(model, Ranker):
        filling = filling_of(model)
        if filling is not None and not hasattr(model, "trees_"):
            known = [f"column {j}" for j in range(model.n_features_in_)] if columns is None else map(str, columns)
            columns = filling.names(list(known))
        return model._terms(X, qid, positions), columns
    coef = np.asarray(getattr(model, "coef_", np.nan), dtype=np.float64)
    if coef.ndim != 1:
        raise InputError(
            f"{type(model).__name__} is not known to be additive; pass a linear or kernel ranker, or a pursuit."
        )
    return [Terms.of_columns(as_rows(X)[positions], coef)], columns


def _best(model: Any) -> Any:
    """Return the best model of a search, or the model itself."""
    return _best(model.best_estimator_) if hasattr(model, "best_estimator_") else model


def _names_out(steps: Any, X: Any, columns: Any) -> Any:
    """Return the column names after the steps of a pipeline; None if unknown."""
    if columns is None:
        columns = [f"column {column}" for column in range(X.shape[1] if hasattr(X, "shape") else len(X[0]))]
    try:
        return steps.get_feature_names_out(np.asarray(list(map(str, columns)), dtype=object))
    except (AttributeError, ValueError):
        return None


def _labels(terms: Terms, columns: Any, first_row: int) -> list[str]:
    if terms.kind == "prior":
        return ["prior"]
    if terms.kind == "row":
        view = "" if terms.view is None else f", view {terms.view}"
        return [f"training row {number + first_row}{view}" for number in terms.numbers]
    if columns is None:
        return [f"column {number}" for number in terms.numbers]
    listed = list(map(str, columns))
    if terms.numbers.max(initial=-1) >= len(listed):
        raise InputError(f"names has {len(listed)} names, but the model has more columns; pass one for each.")
    return [listed[number] for number in terms.numbers]


def _require_sum(model: Any, parts: Floats, sums: Floats, scores: list[float]) -> None:
    """Raise `InputError` for a model whose score is a function of the sum."""
    size = np.abs(parts).sum() + np.abs(sums).max(initial=0.0) + abs(scores[0]) + abs(scores[1])
    if not abs(parts.sum() - (scores[0] - scores[1])) <= _ROUNDING * size:
        raise InputError(
            f"{type(model).__name__} is not additive, so its scores cannot be split into contributions; explain a "
            "linear or kernel model, or a pursuit."
        )


def _texts(row: tuple[str, float | None, float | None, float | None, float]) -> tuple[str, ...]:
    name, *numbers, part = row
    return (name, *("" if number is None else f"{number:.4g}" for number in numbers), f"{part:+.4g}")
