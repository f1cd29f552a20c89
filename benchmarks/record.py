"""
Run a benchmark and append its figures to benchmarks/history.

    python benchmarks/record.py exact --quick

runs ``bench_exact.py --quick``, prints its lines and appends each line that is a JSON object to
``benchmarks/history/exact.json``, one figure a line, with commit, date, arguments, versions and processor.
Compare figures only between lines of the same processor.
"""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LIBRARIES = ("corank", "numpy", "scipy", "numba", "scikit-learn")


def processor() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    """Return the short hash of the commit, with a plus sign if the tree has changes."""
    words = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def context(arguments: list[str]) -> dict[str, Any]:
    """Return what a figure depends on besides the code of the benchmark."""
    return {
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "arguments": arguments,
        "versions": {name: version(name) for name in LIBRARIES},
        "processor": processor(),
    }


def figures(lines: list[str]) -> list[dict[str, Any]]:
    """Return the lines that are JSON objects."""
    found = []
    for line in lines:
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def main(name: str, *arguments: str) -> None:
    """Run one benchmark and keep its figures; if it fails, no figure is kept."""
    around = context(list(arguments))
    words = [sys.executable, str(HERE / f"bench_{name}.py"), *arguments]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        sys.exit(done.returncode)
    with (HERE / "history" / f"{name}.json").open("a", encoding="utf-8") as history:
        history.writelines(json.dumps({**around, **figure}) + "\n" for figure in figures(done.stdout.splitlines()))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("name a benchmark: python benchmarks/record.py exact --quick")
    main(*sys.argv[1:])
