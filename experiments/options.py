"""The options of an experiment and its stored results, so that a second run continues."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from corank._version import __version__
from corank.data.durable.atomic import explain_write_errors, require_place
from corank.data.durable.files import JsonLines, complete_lines
from corank.errors import InputError


@dataclass(frozen=True)
class ExperimentOptions:
    """
    Options of an experiment, and its stored results.

    folder: folder of finished results (``results.jsonl``), tables and plots; created if missing.
    quick: whether to run a short version with rough results.
    seed: random seed.
    repeats: number of repeats; None for the experiment's default.
    asreview: results of ASReview, for `experiments.screening`.
    expect: called with the number of further results to come.
    report_done: called once with the name of each finished result.
    commit: commit of the code, stored with each result.
    reuse: whether stored results of other commits count; otherwise they are computed again.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> ExperimentOptions(folder).result({"alpha": 0.1}, lambda: [1.0, 2.0])
    [1.0, 2.0]
    >>> ExperimentOptions(folder).result({"alpha": 0.1}, lambda: 1 / 0)  # stored
    [1.0, 2.0]
    """

    folder: Path
    quick: bool = False
    seed: int = 0
    repeats: int | None = None
    asreview: Path | None = None
    expect: Callable[[int], None] = field(default=lambda n: None, compare=False)
    report_done: Callable[[str], None] = field(default=lambda name: None, compare=False)
    commit: str = ""
    reuse: bool = True

    def __post_init__(self) -> None:
        if self.repeats is not None and self.repeats < 1:
            raise InputError(f"repeats is {self.repeats}; pass at least 1.")
        with explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        require_place(self._log, overwrite=True)

    def result(self, key: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """
        Return a stored result, or compute and store it.

        key: JSON values on which the result depends, besides the seed and corank's version.
        compute: returns the result, a JSON value.
        Returns: the result as JSON values.
        """
        name = json.dumps({**key, "seed": self.seed, "corank": __version__}, sort_keys=True)
        if name not in self._known:
            began, inner = _processor_seconds(), sum(self._computed)
            value = compute()
            # a computation may need other results, which count their own time
            seconds = _processor_seconds() - began - (sum(self._computed) - inner)
            self._computed.append(seconds)
            with JsonLines(self._log, wait=True) as log:  # another run may write here too
                log.append({"key": name, "value": value, "seconds": round(seconds, 3), "commit": self.commit})
                self._known[name] = json.loads(log.lines[-1])
        if name not in self._reported:
            self._reported[name] = key
            self.report_done(" ".join(map(str, key.values())))
        return self._known[name]["value"]

    @property
    def results(self) -> list[tuple[dict[str, Any], Any]]:
        """Keys and values of all results that this run has used."""
        return [(key, self._known[name]["value"]) for name, key in self._reported.items()]

    @property
    def seconds(self) -> float:
        """Processor seconds of all results that this run has used, computed now or before."""
        return float(sum(self._known[name].get("seconds", 0.0) for name in self._reported))

    @property
    def commits(self) -> list[str]:
        """Commits of the code that computed the results that this run has used."""
        return sorted({self._known[name].get("commit", "") for name in self._reported}) or [self.commit]

    @property
    def _log(self) -> Path:
        return self.folder / "results.jsonl"

    @cached_property
    def _reported(self) -> dict[str, dict[str, Any]]:
        return {}

    @cached_property
    def _computed(self) -> list[float]:
        """Processor seconds of the results computed by this run."""
        return []

    @cached_property
    def _known(self) -> dict[str, dict[str, Any]]:
        """Entries of earlier runs; an incomplete last line is ignored."""
        if not self._log.exists():
            return {}
        try:
            entries = [json.loads(line) for line in complete_lines(self._log)]
            accepted = [entry for entry in entries if self.reuse or entry.get("commit") == self.commit]
            return {entry["key"]: {**entry, "value": entry["value"]} for entry in accepted}
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{self._log} is damaged ({error}); remove it and run the experiment again.") from error


def _processor_seconds() -> float:
    """Return the processor time of this process and of its finished children."""
    return sum(os.times()[:4])
