"""Free memory of the machine, and a check before work that needs much of it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path

from corank.errors import InputError

# share of the free memory that one step may take
_SHARE = 0.9
# smaller amounts are not checked, so that small problems read no files of the system
_MIN_CHECKED = 1 << 27
_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def require_memory(n_rows: int, n_bytes: float, instead: str, what: str = "rows") -> None:
    """Raise `InputError` if arrays do not fit in free memory. Call it before the first of them is allocated."""
    if n_bytes < _MIN_CHECKED:
        return
    free = free_memory()
    if free is not None and n_bytes > _SHARE * free:
        raise InputError(
            f"{n_rows:,} {what} need {n_bytes / 1e9:,.1f} GB of memory, but {free / 1e9:,.1f} GB are free; {instead}."
        )


def free_memory() -> float | None:
    """
    Return the number of bytes that this process can still allocate; None if the system does not tell.

    It is the least of the memory that the system has available and the limits of control groups and of the process.
    """
    amounts = [amount for amount in (_of_system(), *_of_groups(), _of_process()) if amount is not None]
    return max(min(amounts), 0.0) if amounts else None


def _of_system() -> float | None:
    """Available memory; on systems without such a number and without psutil, the memory of the machine, if known."""
    fields = _fields(_PROC / "meminfo")
    if "MemAvailable:" in fields:
        return 1024.0 * fields["MemAvailable:"]
    try:
        return float(importlib.import_module("psutil").virtual_memory().available)
    except ImportError:
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_groups() -> Iterator[float]:
    """What is left of the limit of each control group (versions 1 and 2) that holds this process."""
    try:
        lines = (_PROC / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _GROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            root = _GROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            if folder == root.parent:
                break
            limit, used = _number(folder / names[0]), _number(folder / names[1])
            if limit is not None and used is not None:
                # cached files are dropped when memory is needed
                yield limit - used + _fields(folder / "memory.stat").get(names[2], 0.0)


def _of_process() -> float | None:
    """What is left of the limit of the address space (`ulimit -v`)."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        pages = float((_PROC / "self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return None
    return None if limit == resource.RLIM_INFINITY else limit - pages * resource.getpagesize()


def _fields(path: Path) -> dict[str, float]:
    """Read lines of a name and a number."""
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: float(line[1]) for line in lines if len(line) > 1 and line[1].isdigit()}


def _number(path: Path) -> float | None:
    """Read a file that holds one number; None if it does not exist or says "max"."""
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return float(text) if text.isdigit() else None
