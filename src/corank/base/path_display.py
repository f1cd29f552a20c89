"""PathDisplay: the held-out metric along a tuning path, of alpha, of the terms of a pursuit, or of a grid search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from corank.base.search import QuerySearchCV
from corank.errors import InputError, import_extra
from corank.metrics import parse_metric

Floats = NDArray[np.float64]

# a wider range of positive values than this is drawn on a logarithmic axis
_WIDE = 20.0


class TuningStep(NamedTuple):
    """One candidate: the parameter's name and value, its mean held-out metric, and whether it was chosen."""

    parameter: str
    value: float
    mean: float
    is_chosen: bool


def ranker_of(model: Any) -> Any:
    """Return the fitted ranker inside a search, a pipeline or a prior."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(model, Pipeline):
            model = model[-1]
        elif hasattr(model, "ranker_"):
            model = model.ranker_
        else:
            return model


def path_of(model: Any) -> list[TuningStep]:
    """Return the candidates of alpha, of the longest grid, or of the number of terms; empty without a path."""
    if isinstance(model, QuerySearchCV):
        return _search_path(model)
    ranker = ranker_of(model)
    if hasattr(ranker, "terms_") and hasattr(ranker, "validation_errors_"):
        n_terms = len(ranker.terms_)
        return [
            TuningStep("n_terms", float(at), float(error), at == n_terms)
            for at, error in enumerate(ranker.validation_errors_)
            if np.isfinite(error)
        ]
    if getattr(ranker, "alphas", None) is None or not hasattr(ranker, "loo_scores_"):
        return []
    means = np.asarray(ranker.loo_scores_)
    if means.ndim == 2:
        couplings = [ranker.coupling_] if ranker.couplings is None else ranker.couplings
        means = means[int(np.argmin(np.abs(np.asarray(couplings) - ranker.coupling_)))]
    pairs = zip(ranker.alphas, means, strict=True)
    return [
        TuningStep("alpha", float(a), float(mean), bool(np.isclose(a, ranker.alpha_)))
        for a, mean in pairs
        if np.isfinite(mean)
    ]


def _search_path(search: QuerySearchCV) -> list[TuningStep]:
    grid = {name: values for name, values in search.param_grid.items() if len(values) > 1}
    name = next((one for one in grid if one.endswith("alpha")), max(grid, key=lambda one: len(grid[one]), default=""))
    if not name or not all(isinstance(value, int | float) for value in grid[name]):
        return []
    sign = 1.0 if parse_metric(search.metric).measure.larger_is_better else -1.0
    means = np.asarray(search.cv_results_["mean_test_score"])
    tried = np.array([params[name] for params in search.cv_results_["params"]], dtype=np.float64)
    found = []
    for value in grid[name]:
        of_value = means[tried == value]
        if np.isfinite(of_value).any():
            # at the best values of the other parameters
            best = sign * float(np.nanmax(of_value))
            found.append(TuningStep(name.rpartition("__")[2], float(value), best, value == search.best_params_[name]))
    return found


@dataclass(eq=False)
class PathDisplay:
    """
    A tuning path as a plot, in the manner of scikit-learn's displays.

    Parameters
    ----------
    values : array of shape (n_candidates,)
        Candidate values of the parameter, ascending.
    means : array of shape (n_candidates,)
        Mean metric or error on held-out queries.
    chosen : float or None
        The value that was chosen.
    parameter : str
        Name of the parameter.
    ylabel : str
        Label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure, after `plot`.
    line_ : matplotlib Line2D
        The path, after `plot`.

    Examples
    --------
    >>> from corank import RankRLS, make_ranking
    >>> from corank.base import PathDisplay
    >>> made = make_ranking(20, 8, random_state=0)
    >>> model = RankRLS(alphas=[0.1, 1.0, 10.0]).fit(made.X, made.y, qid=made.qid)
    >>> display = PathDisplay.from_estimator(model)  # needs matplotlib
    >>> display.parameter, display.values.tolist()
    ('alpha', [0.1, 1.0, 10.0])
    """

    values: Floats
    means: Floats
    chosen: float | None = None
    parameter: str = "alpha"
    ylabel: str = "held out"
    ax_: Any = field(default=None, init=False, repr=False)
    figure_: Any = field(default=None, init=False, repr=False)
    line_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """
        Draw the tuning path of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            A ranker fitted with `alphas`, a pursuit fitted with `early_stopping`, or a `QuerySearchCV`.
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.

        Returns
        -------
        PathDisplay
            The display.
        """
        steps = sorted(path_of(estimator), key=lambda one: one.value)
        if not steps:
            raise InputError(
                f"{type(estimator).__name__} has no tuning path; fit a ranker with alphas, a pursuit with "
                "early_stopping=True, or a QuerySearchCV."
            )
        parameter = steps[0].parameter
        label = getattr(estimator, "metric", None) or "metric"
        return cls(
            np.array([one.value for one in steps]),
            np.array([one.mean for one in steps]),
            next((one.value for one in steps if one.is_chosen), None),
            parameter,
            "held-out error" if parameter == "n_terms" else f"held-out {label}",
        ).plot(ax=ax)

    def plot(self, ax: Any = None, **line_options: Any) -> Self:
        """
        Draw the path; a ring marks the choice.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        **line_options
            Passed to ``Axes.plot``.

        Returns
        -------
        PathDisplay
            This display, with `ax_`, `figure_` and `line_`.
        """
        pyplot = import_extra("matplotlib.pyplot", "report")
        ax = pyplot.subplots()[1] if ax is None else ax
        (self.line_,) = ax.plot(self.values, self.means, **{"marker": "o", **line_options})
        if self.chosen is not None:
            at = int(np.argmin(np.abs(self.values - self.chosen)))
            ring = {"marker": "o", "markersize": 13, "markerfacecolor": "none", "linestyle": "none"}
            ax.plot(self.values[at], self.means[at], color=self.line_.get_color(), label="chosen", **ring)
            ax.legend()
        if self.values[0] > 0.0 and self.values[-1] > _WIDE * self.values[0] and self.parameter != "n_terms":
            ax.set_xscale("log")
        ax.set_xlabel(self.parameter)
        ax.set_ylabel(self.ylabel)
        self.ax_, self.figure_ = ax, ax.figure
        return self
