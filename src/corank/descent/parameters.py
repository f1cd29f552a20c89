"""What the parameters of SPD, CRR and LCRA may be, alone and together."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from corank.core import sgd_parts
from corank.descent.task import Task
from corank.errors import InputError

RATES = {
    "pegasos": sgd_parts.PEGASOS,
    "constant": sgd_parts.CONSTANT,
    "sqrt": sgd_parts.SQRT,
    "adagrad": sgd_parts.ADAGRAD,
}


@dataclass(frozen=True)
class Settings:
    """
    Where SPD, CRR and LCRA differ.

    Attributes
    ----------
    mix, coupling : float
        See `corank.descent.objective.Objective`.
    fit_intercept : bool
        Whether the regression part has a bias.
    batch, unscored_batch : int
        Examples and unscored pairs of a step.
    """

    mix: float = 0.0
    coupling: float = 0.0
    fit_intercept: bool = False
    batch: int = 1
    unscored_batch: int = 1


CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left")],
    "l1": [Interval(Real, 0, None, closed="left")],
    "rate": [StrOptions(set(RATES))],
    "eta0": [Interval(Real, 0, None, closed="neither"), None],
    "n_steps": [Interval(Integral, 0, None, closed="left")],
    "average": ["boolean", None],
    "project": ["boolean"],
    "sampling": [StrOptions({"pairs", "query", "rows"})],
    "solver": [StrOptions({"auto", "sgd", "exact"})],
    "tol": [Interval(Real, 0, None, closed="left"), None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["boolean"],
}


def require_sense(model: Any) -> None:
    """
    Raise one sentence where parameters contradict each other.

    Parameters
    ----------
    model : LinearDescent
        Whose parameters were checked one by one.
    """
    if model.rate == "adagrad" and (model.average or model.project):
        raise InputError("rate='adagrad' already averages pulls; leave average and project False.")
    if model.l1 > 0.0 and (model.average or model.project):
        raise InputError("l1 asks for exact zeros, which average and project would undo; leave both False.")
    if model.project and not model.alpha > 0.0:
        raise InputError("project needs alpha above 0, since the ball has radius 1/√alpha; set project=False.")
    if model.n_jobs == 0:
        raise InputError("n_jobs is 0; pass a positive number, -1 for every processor, or None for one.")
    if model.solver == "exact" and (model.l1 > 0.0 or model.tol is not None or model.sampling != "pairs"):
        raise InputError(
            "solver='exact' minimises the mean over all pairs without l1 or early stopping; "
            "set l1=0, tol=None and sampling='pairs', or choose solver='sgd'."
        )


def first_rate(task: Task, n_views: int, rate: str, eta0: float | None) -> float:
    """
    Choose the first rate.

    Parameters
    ----------
    task : Task
        What is learnt from.
    n_views : int
        Number of views.
    rate : str
        One of `RATES`.
    eta0 : float, optional
        What the user asked for; None leaves the choice to this function (see `corank.SPD`).

    Returns
    -------
    float
        eta0.
    """
    o = task.objective
    given = eta0 is not None
    if eta0 is not None:
        eta0 = float(eta0)
    else:
        curvature = task.sample.curvature(o, n_views)
        # AdaGrad divides by the size of the pulls, so its rate has the unit of a weight
        eta0 = curvature**-0.5 if rate == "adagrad" else 1.0 / curvature
    if rate == "pegasos" and o.alpha > 0.0:
        return min(eta0, 1.0 / o.alpha)
    if rate != "adagrad" and eta0 * o.alpha >= 1.0:
        if not given:
            return 0.5 / o.alpha
        raise InputError(
            f"eta0 · alpha is {eta0 * o.alpha:g}, so a step would wipe out the weights; keep the product below 1."
        )
    return eta0
