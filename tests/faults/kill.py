"""
Kill every writer at many instants, and check the files afterwards.

``python tests/faults/kill.py --kills 200`` (``make kills``; the tests do so with few kills). A child is forked from a
process that has imported and compiled everything, and is killed

* before the k-th call that changes the disk; and, one time in four,
* at a random time, so that it also dies inside loops of other libraries.

Then the target must hold the complete old or new content; a second run must succeed, give the new content and leave no
other file. Prints one line of JSON per writer; the exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType
from typing import Any

from corank.data.durable.atomic import _rename, folder_exists
from faults.commands import COMMANDS
from faults.functions import FUNCTIONS, IN_PARTS, RESULTS
from faults.writers import Writer, tree

CHANGES = {
    "chmod", "execute", "flock", "mkdir", "open", "posix_fallocate", "rename", "replace", "rmdir", "serialize_file",
    "truncate", "unlink", "write", "write_table",
}  # fmt: skip
RENAMES = {"rename", "replace"}
WRITES = {"posix_fallocate", "serialize_file", "write", "write_table"}
WRITERS = {writer.name: writer for writer in (*COMMANDS, *FUNCTIONS, *RESULTS, *IN_PARTS)}


class Events:
    """Counts the calls of a process that change the disk, and kills it before one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.names: list[str] = []
        self.last = last

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call" and not isinstance(arg.__self__, str):
            name = arg.__name__
        elif event == "call" and frame.f_code is _rename.__code__:  # by way of the C library
            name = "rename"
        else:
            return
        if name in CHANGES:
            if len(self.names) == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            self.names.append(name)


def forked(work: Callable[[], None]) -> int:
    """Do something in a child, and return its number."""
    child = os.fork()
    if child:
        return child
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """Wait for a child, and return its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def events_of(work: Callable[[], None], folder: Path) -> list[str]:
    """Events of an undisturbed run."""

    def note() -> None:
        events = Events()
        watch(events)
        work()
        sys.setprofile(None)
        (folder / "events").write_text(json.dumps(events.names))

    if ended(forked(note)):
        raise RuntimeError("an undisturbed run fails")
    return list(json.loads((folder / "events").read_text()))


def watch(events: Events) -> None:
    """Count events of this thread and of those that it starts, such as the one that writes to a database."""
    threading.setprofile(events)
    sys.setprofile(events)


def chosen(names: list[list[str]], kills: int) -> list[tuple[int, int]]:
    """Events to kill at, without and with an old version: all, or those around renames first, then writes."""
    events = [(has_old, last) for has_old in range(2) for last in range(len(names[has_old]))]
    if 2 * kills >= len(events):
        return events

    def rank(event: tuple[int, int]) -> int:
        has_old, last = event
        around = set(names[has_old][max(last - 1, 0) : last + 1])
        return 0 if around & RENAMES else 1 if names[has_old][last] in WRITES else 2

    return sorted(events, key=rank)[: kills - kills // 4]


def kill(writer: Writer, kills: int, rng: random.Random) -> dict[str, Any]:
    """Kill a writer, without and with an old version, and check the files; a slow one a fifth as often."""
    kills = max(kills // 5, 4) if writer.is_slow else kills
    root = Path(tempfile.mkdtemp())
    new, old = root / "new", root / "old"
    with redirect_stdout(io.StringIO()):
        for folder, version in ((old, 0), (new, 0), (new, 1)):
            folder.mkdir(exist_ok=True)
            writer(folder, version)
        began = time.perf_counter()
        writer(new, 1)
        seconds = time.perf_counter() - began
    names = []
    for before in (None, old):
        folder = prepared(root, before)
        names.append(events_of(lambda folder=folder, force=before is not None: writer(folder, 1, force), root))
    instants: list[tuple[int, int | None]] = [*chosen(names, kills)]
    instants += [(k % 2, None) for k in range(max(kills // 4, kills - len(instants)))]
    outcome: dict[str, Any] = {"writer": writer.name, "events": [*map(len, names)], "instants": len(instants)}
    outcome |= {"killed": 0, "old": 0, "new": 0, "between": 0, "faults": []}
    for has_old, last in instants:
        folder = prepared(root, old if has_old else None)
        after = rng.random() * seconds if last is None else None
        code = killed(writer, folder, bool(has_old), last, after)
        outcome["killed"] += code == -signal.SIGKILL
        folder_exists(folder / writer.target)  # as every reader of a folder asks
        found, expected = tree(folder), (tree(old) if has_old else {}, tree(new))
        outcome["new" if found == expected[1] else "old" if found == expected[0] else "between"] += 1
        if code not in (0, -signal.SIGKILL):
            fault = f"ended with {code}"
        elif not writer.allows(found, *expected):
            fault = f"left {sorted(found)}"
        else:
            fault = next_run(writer, folder, new)
        if fault:
            outcome["faults"].append(f"{'over old, ' * has_old}event {last}, {after} s: {fault}")
    shutil.rmtree(root)
    return outcome


def killed(writer: Writer, folder: Path, overwrite: bool, last: int | None, after: float | None) -> int:
    """Kill a writer at an event or after a time; return its exit code, since it may have finished."""

    def work() -> None:
        if last is not None:
            watch(Events(last))
        writer(folder, 1, overwrite)

    child = forked(work)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return ended(child)


def next_run(writer: Writer, folder: Path, new: Path) -> str:
    """Write again; return an error, empty if there is none."""
    if ended(forked(lambda: writer(folder, 1))):
        return "the next run fails"
    if tree(folder) != tree(new) or len(os.listdir(folder)) != len(os.listdir(new)):
        return f"after the next run there is {sorted(os.listdir(folder))}"
    return ""


def prepared(root: Path, old: Path | None) -> Path:
    """A folder to write in: empty, or with an old version."""
    folder = root / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    if old is None:
        folder.mkdir()
    else:
        shutil.copytree(old, folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--kills", type=int, default=200, help="kills of each writer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("writers", nargs="*", help=f"some of: {', '.join(WRITERS)}")
    given = parser.parse_args()
    failed = False
    for name in given.writers or WRITERS:
        began = time.perf_counter()
        outcome = kill(WRITERS[name], given.kills, random.Random(given.seed))
        failed |= bool(outcome["faults"])
        print(json.dumps({**outcome, "seconds": round(time.perf_counter() - began, 1)}), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
