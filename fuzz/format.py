"""Format: what a fuzzer brings, and the rules that every input is judged by."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType

import corank
from corank.errors import InputError

PACKAGE = f"{Path(corank.__file__).parent}/"
"""The folder of the package, wherever the project lies."""


class Wrong(Exception):
    """
    An answer that differs from the reference.

    kind: what differs, in the same words for the same fault.
    detail: what came and what was wanted.
    """

    def __init__(self, kind: str, detail: object = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class Unclear(Exception):
    """The description of the format leaves open what becomes of an input; only the rules for all inputs hold."""


@dataclass(frozen=True)
class Failure:
    """
    A rule that was broken.

    kind: what happened and where; failures of one kind are taken for one fault.
    detail: the message or the stack.
    """

    kind: str
    detail: str


class Format(ABC):
    """
    Inputs of one kind of file, and what must hold for each.

    name: how it is called on the command line, and its folder in the corpus.
    suffix: how files of its corpus end.
    share: its part of the time, beside the others'.
    ways: number of settings that a reader is tried in; every input of the corpus is tried in all of them.
    quick: how many of them, the first, are tried with most inputs of a round; all of them by default.
    is_text: whether a part of an input is an input too, so that a failing one can be cut down.
    sample: an ordinary input, which is accepted; loads and compiles what every input needs.
    """

    name: str
    suffix: str
    share: float = 1.0
    ways: int = 1
    quick: int | None = None
    is_text: bool = False
    sample: bytes = b""

    def prepare(self) -> None:
        """Get ready, once, before workers are forked."""
        with tempfile.TemporaryDirectory() as folder:
            for way in range(self.ways):
                judge(self, self.sample, way, Path(folder))

    @abstractmethod
    def generate(self, dice: Random) -> bytes:
        """Make an input from dice alone."""

    @abstractmethod
    def check(self, content: bytes, way: int, folder: Path) -> bool:
        """
        Read an input and use what was read.

        content: the input.
        way: setting of the reader.
        folder: where files may be put; what corank leaves there is found by the caller.
        Returns: whether it was accepted; raises `Wrong` where the reference says otherwise.
        """


def tune(module: ModuleType, **constants: int) -> None:
    """Set constants of a module of corank, which must have them: sizes that only large files reach."""
    for name, value in constants.items():
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no {name} any more; tune what took its place")
        setattr(module, name, value)


def judge(form: Format, content: bytes, way: int, folder: Path) -> bool | Failure:
    """
    Say whether an input was accepted, or which rule it broke: no foreign exception, no warning, nothing left behind.

    folder: empty but for what earlier inputs of the same format put there.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        try:
            verdict: bool | Failure = form.check(content, way, folder)
        except InputError:
            verdict = False
        except Wrong as wrong:
            verdict = Failure(f"wrong: {wrong.kind}", f"way {way}: {wrong.detail}")
        except BaseException as error:
            verdict = Failure(f"{type(error).__name__} {_place(error)}", f"way {way}: {error}"[:500])
    leftovers = [name for name in os.listdir(folder) if name.startswith(".") or name.endswith(".part")]
    if not leftovers:
        return verdict
    for name in leftovers:
        place = folder / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    return verdict if isinstance(verdict, Failure) else Failure("leftovers", f"way {way}: {leftovers}")


def _place(error: BaseException) -> str:
    """Where corank was when it raised, without line numbers: they change with every mend."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    if not ours:
        return f"in {Path(frames[-1].filename).name} {frames[-1].name}"
    return f"in {ours[-1].filename.removeprefix(PACKAGE)} {ours[-1].name}"
