"""Format: the interface of a fuzzer, and the rules that every input must obey."""

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
"""Folder of the package."""


class Wrong(Exception):
    """
    An answer that differs from the reference.

    kind: what differs; the same text for the same fault.
    detail: what was found and what was expected.
    """

    def __init__(self, kind: str, detail: object = "") -> None:
        super().__init__(kind, detail)
        self.kind = kind
        self.detail = detail


class Unclear(Exception):
    """The format does not define the result of an input; only the general rules apply."""


@dataclass(frozen=True)
class Failure:
    """
    A rule that was broken.

    kind: what happened and where; failures of one kind count as one fault.
    detail: the message or the stack trace.
    """

    kind: str
    detail: str


class Format(ABC):
    """
    Inputs of one kind of file, and what must hold for each.

    name: name on the command line, and folder of the corpus.
    suffix: suffix of the files of its corpus.
    share: its share of the time, relative to the other formats.
    ways: number of settings of the reader; every input of the corpus is tried with all of them.
    quick: number of settings (the first ones) tried with most inputs of a round; all by default.
    is_text: whether a part of an input is also an input, so that failing inputs can be shortened.
    sample: a valid input, read first to import and compile everything.
    """

    name: str
    suffix: str
    share: float = 1.0
    ways: int = 1
    quick: int | None = None
    is_text: bool = False
    sample: bytes = b""

    def prepare(self) -> None:
        """Prepare once, before workers are forked."""
        with tempfile.TemporaryDirectory() as folder:
            for way in range(self.ways):
                judge(self, self.sample, way, Path(folder))

    @abstractmethod
    def generate(self, rng: Random) -> bytes:
        """Generate an input."""

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
    """Set constants of a module of corank, such as sizes that only large files reach."""
    for name, value in constants.items():
        if not hasattr(module, name):
            raise AttributeError(f"{module.__name__} has no {name} any more; tune what took its place")
        setattr(module, name, value)


def judge(form: Format, content: bytes, way: int, folder: Path) -> bool | Failure:
    """
    Say whether an input was accepted, or which rule it broke: no foreign exception, no warning, nothing left behind.

    folder: contains only files of earlier inputs of the same format.
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
    """Return the function of corank that raised, without the line number, which changes with every fix."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE)]
    if not ours:
        return f"in {Path(frames[-1].filename).name} {frames[-1].name}"
    return f"in {ours[-1].filename.removeprefix(PACKAGE)} {ours[-1].name}"
