"""The evidence of grades as a function of a kernel's numbers, of sigma and of what the likelihood leaves open."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corank.gp.ep.hyper import dense, maximise
from corank.gp.ep.items import Items
from corank.gp.ep.propagation import root_of
from corank.gp.ordinal.grades import SIGMA, Grades, Reading
from corank.kernels.views import View

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# how still sites have to be while numbers are tried
_TOLERANCE = 1e-5
# noise that is learnt is no less than this share of f: equal rows of equal grades would make it nothing
_LEAST_NOISE = 0.01


@dataclass
class GradeEvidence:
    """
    log Z of grades; called with θ: logarithms of the kernel's numbers, ½ log(sigma² − least²), and what else is free.

    n_theta: how many parameters of the kernel are learnt; 0 for a fixed kernel.
    items, at: the items that take part, numbered in `grades` by their place in `at`.
    sigma: None where it is learnt.
    size: deviation of f, in which sigma is at least 0.01.
    """

    view: View
    n_theta: int
    items: Items
    at: Integers
    grades: Grades
    sigma: float | None
    rows: Any = field(init=False)
    size: float = field(init=False)

    def __post_init__(self) -> None:
        self.rows = dense(self.items.rows[self.at])
        self.size = float(np.sqrt(np.diagonal(self.items.gram(self.view, self.at)).mean()))

    def parts(self, theta: Floats) -> tuple[Floats, float, Floats]:
        """The kernel's numbers, sigma, and the rest."""
        k = self.n_theta
        if self.sigma is not None:
            return theta[:k], self.sigma, theta[k:]
        return theta[:k], float(np.hypot(np.exp(theta[k]), _LEAST_NOISE * self.size)), theta[k + 1 :]

    def view_at(self, of_kernel: Floats) -> View:
        """The view with these numbers."""
        return replace(self.view, kernel=self.view.kernel.with_theta(of_kernel))

    def start(self) -> Floats:
        """Where learning starts."""
        sigma = SIGMA * self.size if self.sigma is None else self.sigma
        of_sigma = [np.log(sigma)] if self.sigma is None else []
        return np.concatenate([self.view.kernel.theta[: self.n_theta], of_sigma, self.grades.start(self.size, sigma)])

    def __call__(self, theta: Floats) -> tuple[float, Floats]:
        """log Z and its slopes."""
        of_kernel, sigma, free = self.parts(theta)
        view = self.view_at(of_kernel)
        K = self.items.gram(view, self.at)
        R, _ = root_of(K)
        reading: Reading = self.grades.read(R, sigma, free, tol=_TOLERANCE, quiet=True)
        slopes = [reading.free_slopes]
        if self.sigma is None:
            share = 1.0 - (_LEAST_NOISE * self.size / sigma) ** 2
            slopes.insert(0, np.array([share * reading.sigma_slope]))
        if len(of_kernel):
            slopes.insert(0, view.kernel.theta_gradient(self.rows, K, reading.pull(R)))
        return reading.approximation.log_evidence, np.concatenate(slopes)


def learnt_grades(
    view: View, items: Items, grades: Grades, sigma: float | None, *, most: int | None, learn: bool, n_restarts: int,
    rng: np.random.Generator,
) -> tuple[View, float, Floats, int]:  # fmt: skip
    """
    Find the numbers that grades speak for.

    most: how many random grades are asked where there are more; None asks all.
    learn: whether the kernel's numbers are among those that are learnt.
    Returns: the view, sigma, what else was free, and how often the evidence was asked.
    """
    at = np.arange(len(items))
    if most is not None and most < len(grades.item):
        some = np.sort(rng.choice(len(grades.item), most, replace=False))
        at, grades = np.unique(grades.item[some]), grades.among(some)
    n_theta = len(view.kernel.theta) if learn else 0
    evidence = GradeEvidence(view, n_theta, items, at, grades, sigma)
    theta, calls = evidence.start(), 0
    if len(theta):
        theta, _, calls = maximise(evidence, theta, n_restarts, rng)
    of_kernel, sigma, free = evidence.parts(theta)
    return evidence.view_at(of_kernel), sigma, free, calls
