"""How an experiment is run, and the results it has already, so that a second run goes on where one ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from corank._version import __version__
from corank.data.durable.atomic import explain_write_errors, require_place
from corank.data.durable.json_lines import JsonLines, complete_lines
from corank.errors import InputError


@dataclass(frozen=True)
class ExperimentOptions:
    """
    How long an experiment may take, its seed, and the folder that keeps its results.

    folder: where finished results (``results.jsonl``), tables and plots are kept; created when missing.
    quick: whether a shortened version is wanted: it shows the shape of the result, not its digits.
    seed: every random choice of the experiment follows from it.
    repeats: number of repeats where the experiment has any; its own default otherwise.
    asreview: what ASReview found, for the experiment that compares with it; see `experiments.screening`.
    expect: takes the number of different results that are about to be asked for; numbers add up.
    tell: takes the name of each different result, once, when it is there.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> ExperimentOptions(folder).result({"alpha": 0.1}, lambda: [1.0, 2.0])
    [1.0, 2.0]
    >>> ExperimentOptions(folder).result({"alpha": 0.1}, lambda: 1 / 0)  # known already
    [1.0, 2.0]
    """

    folder: Path
    quick: bool = False
    seed: int = 0
    repeats: int | None = None
    asreview: Path | None = None
    expect: Callable[[int], None] = field(default=lambda n: None, compare=False)
    tell: Callable[[str], None] = field(default=lambda name: None, compare=False)

    def __post_init__(self) -> None:
        if self.repeats is not None and self.repeats < 1:
            raise InputError(f"repeats is {self.repeats}; at least 1 is needed.")
        with explain_write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        require_place(self._log, overwrite=True)

    def result(self, key: dict[str, Any], compute: Callable[[], Any]) -> Any:
        """
        Return a result that is known already, or compute and keep it.

        key: everything the result depends on besides the seed and corank's version; JSON values only.
        compute: gives the result, a JSON value.
        Returns: the result as JSON gives it back: lists, dicts, numbers, strings.
        """
        name = json.dumps({**key, "seed": self.seed, "corank": __version__}, sort_keys=True)
        if name not in self._known:
            entry = {"key": name, "value": compute()}
            with JsonLines(self._log, wait=True) as log:  # another run may write here too
                log.append(entry)
                self._known[name] = json.loads(log.lines[-1])["value"]
        if name not in self._told:
            self._told.add(name)
            self.tell(" ".join(map(str, key.values())))
        return self._known[name]

    @property
    def _log(self) -> Path:
        return self.folder / "results.jsonl"

    @cached_property
    def _told(self) -> set[str]:
        return set()

    @cached_property
    def _known(self) -> dict[str, Any]:
        """Results of earlier runs; an incomplete last line is ignored."""
        if not self._log.exists():
            return {}
        try:
            entries = [json.loads(line) for line in complete_lines(self._log)]
            return {entry["key"]: entry["value"] for entry in entries}
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{self._log} is damaged ({error}); remove it and run the experiment again.") from error
