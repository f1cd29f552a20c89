"""Results of full runs, stored in ``experiments/results``: the source of all figures on the pages of experiments."""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from corank.comparison.report import Report
from corank.data.durable.atomic import atomic_file
from corank.errors import InputError
from corank.tables import Cell, ReportTable
from experiments.options import ExperimentOptions

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "experiments" / "results"
LIBRARIES = ("corank", "numpy", "scipy", "scikit-learn", "lightgbm")
REPEATED = ("draw", "fold", "repeat", "resample", "split", "start")
"""Names in a key that count repeats; results that differ in them only belong together."""
TIMES = ("cpu", "seconds", "prepare")

Spread = tuple[float, float, int]


@dataclass(frozen=True)
class StoredResults:
    """
    The report of a full run with everything that it depends on.

    commit: commit of the code; several if results of earlier commits were reused.
    repeats: number of repeats, if it was not the experiment's default.
    seconds: processor seconds of the whole run.
    spreads: for each group of repeats and each figure in it, mean, standard deviation and number of repeats.
    note: printed with the provenance, for example that figures were not measured again.
    """

    name: str
    command: str
    commit: str
    date: str
    seed: int
    repeats: int | None
    versions: dict[str, str]
    machine: str
    seconds: float
    report: Report
    spreads: dict[str, dict[str, Spread]] = field(default_factory=dict)
    note: str = ""

    @classmethod
    def of(
        cls, name: str, command: str, report: Report, options: ExperimentOptions, seconds: float = 0.0
    ) -> StoredResults:
        """
        Collect the results of a run that has just ended.

        seconds: its processor time; results of earlier runs took more, if it only read them.
        """
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        return cls(
            name, command, ", ".join(options.commits), today, options.seed, options.repeats, library_versions(),
            machine_class(), round(max(options.seconds, seconds), 1), report, spreads(options.results),
        )  # fmt: skip

    @classmethod
    def read(cls, name: str, folder: Path | None = None) -> StoredResults:
        """Read the stored results of one experiment."""
        folder = folder or FOLDER
        path = folder / f"{name}.json"
        if not path.is_file():
            raise InputError(
                f"no results of the experiment {name!r} are stored in {folder}; run: make experiment NAME={name}"
            )
        record = json.loads(path.read_text(encoding="utf-8"))
        content = record.pop("report")
        tables = tuple(
            ReportTable(
                item["title"], tuple(item["columns"]), tuple(map(tuple, item["rows"])), item["digits"], item["note"],
                tuple(item["formats"]),
            )
            for item in content["tables"]
        )  # fmt: skip
        plots = tuple(map(Path, content["plots"]))
        report = Report(content["title"], content["about"], tables, tuple(content["findings"]), plots)
        groups = {group: {key: tuple(item) for key, item in of.items()} for group, of in record.pop("spreads").items()}
        return cls(**record, report=report, spreads=groups)

    def write(self, folder: Path | None = None) -> Path:
        """Write the file, whole or not at all."""
        tables = [{**asdict(table), "rows": _plain(table.rows)} for table in self.report.tables]
        record = {
            **{key: value for key, value in vars(self).items() if key not in ("report", "spreads")},
            "report": {**asdict(self.report), "tables": tables, "plots": [plot.name for plot in self.report.plots]},
            "spreads": _plain(self.spreads),
        }
        folder = folder or FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(folder / f"{self.name}.json", overwrite=True) as scratch:
            scratch.write_text(_lines(record) + "\n", encoding="utf-8")
        return folder / f"{self.name}.json"

    @property
    def provenance(self) -> str:
        """One line: command, commit, date, versions, machine and time."""
        libraries = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        parts = [f"`{self.command}`", f"commit {self.commit}", self.date, f"seed {self.seed}", libraries, self.machine]
        parts += [f"{duration(self.seconds)} of processor time"] if self.seconds else []
        return f"*Measured by {'; '.join(part for part in parts if part)}.{f' {self.note}' if self.note else ''}*"


def keep(new: StoredResults, pages: Path = ROOT / "docs" / "experiments") -> list[str]:
    """
    Store new results and their plots instead of older ones.

    Returns: lines about what differs, and the file.
    """
    lines = differences(StoredResults.read(new.name), new) if is_stored(new.name) else []
    for plot in new.report.plots:
        with atomic_file(pages / plot.name, overwrite=True) as scratch:
            scratch.write_bytes(plot.read_bytes())
    return [*(lines or ["no figure differs from the stored ones."]), f"wrote {new.write()}"]


def differences(old: StoredResults, new: StoredResults) -> list[str]:
    """
    Compare a new run with the stored one.

    Returns: one line for each figure whose mean moved by more than the standard deviation over repeats, of the old or
    the new run, whichever is larger; and one line with the number of table cells that are printed otherwise.
    """
    lines = []
    for group, figures in new.spreads.items():
        for name, (mean, deviation, n) in figures.items():
            before = old.spreads.get(group, {}).get(name)
            if before is None or n < 2 or any(time in name for time in TIMES):
                continue
            spread = max(deviation, before[1])
            if abs(mean - before[0]) > max(spread, 1e-6 * abs(mean)):
                lines.append(
                    f"{group} {name}: {before[0]:.4g} stored, {mean:.4g} now, spread over repeats {spread:.2g}"
                )
    cells, changed = 0, 0
    was = {table.title: table for table in old.report.tables}
    for table in new.report.tables:
        earlier = {row[0]: was[table.title].texts(row) for row in was[table.title].rows} if table.title in was else {}
        for row in table.rows:
            cells += len(row)
            changed += sum(a != b for a, b in zip(table.texts(row), earlier.get(row[0], ()), strict=False))
    return [*lines, f"{changed} of {cells} table cells are printed otherwise than before."] if changed else lines


def spreads(results: list[tuple[dict[str, Any], Any]]) -> dict[str, dict[str, Spread]]:
    """
    Return mean, standard deviation and number of repeats of every figure, by group of repeats.

    results: keys and values; a list inside a value counts by its mean.

    >>> spreads([({"method": "a", "fold": 0}, {"AP": 0.25}), ({"method": "a", "fold": 1}, {"AP": [0.5, 1.0]})])
    {'method=a': {'AP': (0.5, 0.353553, 2)}}
    """
    groups: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for key, value in results:
        group = ", ".join(f"{name}={part}" for name, part in key.items() if name not in REPEATED)
        for name, number in _numbers(value):
            groups[group][name].append(number)
    return {
        group: {name: _spread(values) for name, values in figures.items() if len(values) > 1}
        for group, figures in groups.items()
        if any(len(values) > 1 for values in figures.values())
    }


def _spread(values: list[float]) -> Spread:
    deviation = float(np.std(values, ddof=1))
    return float(f"{np.mean(values):.6g}"), float(f"{deviation:.6g}"), len(values)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value with their names; lists of numbers count by their mean."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _numbers(item, f"{name} {key}".strip())
    elif isinstance(value, list):
        flat = [number for item in value for _, number in _numbers(item)]
        if flat:
            yield name, float(np.mean(flat))
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value):
        yield name, float(value)


def code_commit() -> str:
    """Return the last commit that changed the code, with a plus sign if there are uncommitted changes of it."""
    code = ["src", "experiments", ":!experiments/results"]
    commit = _git("log", "-1", "--format=%h", "--abbrev=8", "--", *code)
    return f"{commit}+" if commit and _git("status", "--porcelain", "--", *code) else commit


def committed_code() -> str:
    """Return the commit of the code; uncommitted changes are refused."""
    commit = code_commit()
    if not commit or commit.endswith("+"):
        raise InputError(
            "src or experiments has uncommitted changes, so that no commit describes the results; commit them, then "
            "run the experiment again with --store."
        )
    return commit


def is_stored(name: str, folder: Path | None = None) -> bool:
    """Return whether results of an experiment are stored."""
    return ((folder or FOLDER) / f"{name}.json").is_file()


def stored_seconds(name: str) -> float:
    """Return the processor seconds of the stored run; NaN if they are not known."""
    return StoredResults.read(name).seconds or math.nan if is_stored(name) else math.nan


def stored_repeats(name: str) -> int | None:
    """Return the number of repeats of the stored run; None for the default."""
    return StoredResults.read(name).repeats if is_stored(name) else None


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def library_versions() -> dict[str, str]:
    """Return the versions of the libraries that determine results."""
    outcomes = {}
    for name in LIBRARIES:
        try:
            outcomes[name] = version(name)
        except PackageNotFoundError:
            continue
    return outcomes


def machine_class() -> str:
    """Return the kind of processor and the number of cores, such as "x86-64, 2 cores"."""
    return f"{platform.machine().replace('_', '-')}, {os.cpu_count()} cores"


def duration(seconds: float) -> str:
    """
    Return a duration in words.

    >>> duration(45), duration(600), duration(7200)
    ('45 s', '10 min', '2.0 h')
    """
    if math.isnan(seconds):
        return "not known"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _plain(value: Any) -> Any:
    """Replace NaN by None, since JSON has no NaN, and round floats to seven digits."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    cell: Cell = value
    if isinstance(cell, float):
        return float(f"{cell:.7g}") if np.isfinite(cell) else None
    return cell


def _lines(value: Any, indent: str = "") -> str:
    """Return JSON with one line for each innermost list or object."""
    inner = list(value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ())
    if not any(isinstance(item, (dict, list, tuple)) for item in inner):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    deeper = f"{indent} "
    if isinstance(value, dict):
        parts = [
            f"{deeper}{json.dumps(key, ensure_ascii=False)}: {_lines(item, deeper)}" for key, item in value.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(f"{deeper}{_lines(item, deeper)}" for item in value) + f"\n{indent}]"
