"""ClickCurve: how well a ranker learnt and served, against the number of lists shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from corank.errors import InputError, import_extra

Floats = NDArray[np.float64]
Kind = Literal["offline", "online"]


@dataclass(frozen=True, eq=False)
class ClickCurve:
    """
    Quality against lists shown; what `simulate` returns.

    Attributes
    ----------
    ranker, user : str
        Who learnt, and from whose clicks.
    impressions : array of int64, shape (n_points,)
        Lists shown.
    offline : array of float64, shape (n_runs, n_points)
        nDCG@k of the ranker as it was then, on test rows, under corank's convention: queries without a relevant row are
        left out, ties count by expectation.
    online : array of float64, shape (n_runs, n_points)
        Σ_t discount^(t − 1) · nDCG@k of list t, over all lists so far; a list of a query without a relevant row is
        worth 0.
    discount : float
        What a list is worth less than the one before.
    metric : str
        What was measured.
    coefs : array of float64, shape (n_runs, n_features)
        The weights at the end.
    """

    ranker: str
    user: str
    impressions: NDArray[np.int64]
    offline: Floats
    online: Floats
    discount: float
    metric: str
    coefs: Floats

    def mean(self, kind: Kind = "offline") -> Floats:
        """
        Average over runs.

        Parameters
        ----------
        kind : {"offline", "online"}
            Which curve.

        Returns
        -------
        array of shape (n_points,)
            The mean.
        """
        return np.asarray(self._values(kind).mean(axis=0))

    def error(self, kind: Kind = "offline") -> Floats:
        """
        Return the standard error of the mean over runs.

        Parameters
        ----------
        kind : {"offline", "online"}
            Which curve.

        Returns
        -------
        array of shape (n_points,)
            NaN for a single run.
        """
        return _error(self._values(kind))

    def gain(self, over: ClickCurve, kind: Kind = "offline") -> tuple[Floats, Floats]:
        """
        Compare with another curve run by run; runs of one `random_state` use the same queries and random draws.

        Parameters
        ----------
        over : ClickCurve
            The other, of the same runs and points.
        kind : {"offline", "online"}
            Which curve.

        Returns
        -------
        mean : array of shape (n_points,)
            Mean difference.
        error : array of shape (n_points,)
            Its standard error; NaN for a single run.
        """
        if self.offline.shape != over.offline.shape or not np.array_equal(self.impressions, over.impressions):
            raise InputError("the two curves have other runs or points; simulate both with the same n_runs and at.")
        difference = self._values(kind) - over._values(kind)
        return np.asarray(difference.mean(axis=0)), _error(difference)

    def plot(self, ax: Any = None, kind: Kind = "offline") -> Any:
        """
        Draw the mean, with two standard errors around it.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"offline", "online"}
            Which curve.

        Returns
        -------
        matplotlib Axes
            The drawing.
        """
        pyplot = import_extra("matplotlib.pyplot", "report")
        ax = pyplot.subplots()[1] if ax is None else ax
        mean, band = self.mean(kind), 2.0 * np.nan_to_num(self.error(kind))
        (line,) = ax.plot(self.impressions, mean, label=self.ranker)
        ax.fill_between(self.impressions, mean - band, mean + band, color=line.get_color(), alpha=0.2, linewidth=0)
        ax.set_xscale("symlog", linthresh=10)
        ax.set_xlabel("lists shown")
        ax.set_ylabel(f"{self.metric} on test rows" if kind == "offline" else f"{self.metric} of lists, summed up")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        lines = [f"{self.ranker}, {self.user}, {len(self.offline)} runs", f"{'lists':>8} {'offline':>8} {'online':>9}"]
        for count, offline, online in zip(self.impressions, self.mean(), self.mean("online"), strict=True):
            lines.append(f"{count:>8} {offline:8.4f} {online:9.2f}")
        lines.append(f"offline: {self.metric} on test rows; online: the lists' own, discount {self.discount:g}")
        return "\n".join(lines)

    def _values(self, kind: Kind) -> Floats:
        if kind not in ("offline", "online"):
            raise InputError(f"kind is {kind!r}; pass 'offline' or 'online'.")
        return self.offline if kind == "offline" else self.online


def _error(values: Floats) -> Floats:
    n = len(values)
    return values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1], np.nan)
