"""Public data sets of the experiments: found under $CORANK_DATA (or ~/.cache/corank), or downloaded and verified."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import urllib.request
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from corank.data.durable.atomic import atomic_file
from corank.data.durable.compressed import SUFFIXES
from corank.data.durable.text import open_text
from corank.errors import InputError, reason, suggest_names


@dataclass(frozen=True)
class File:
    """
    One file of a data set.

    Attributes
    ----------
    name : str
        Path inside the data set's folder, without a compression suffix.
    sha256 : str
        Checksum of the uncompressed content.
    url : str or None
        Where the uncompressed content can be had.
    """

    name: str
    sha256: str
    url: str | None = None


@dataclass(frozen=True)
class Dataset:
    """
    A public data set of the experiments.

    Attributes
    ----------
    name, folder, about, terms : str
        What to call it, where it lies under the data root, what it is, and on which terms it may be used.
    files : tuple of File
        What belongs to it.
    """

    name: str
    folder: str
    about: str
    terms: str
    files: tuple[File, ...]

    @property
    def home(self) -> Path:
        """The folder of the data set under the data root."""
        return data_root() / self.folder

    def find(self, name: str) -> Path | None:
        """
        Look for one file, plain or compressed.

        Parameters
        ----------
        name : str
            Name without a compression suffix.

        Returns
        -------
        Path or None
            Where it is, if it is there.
        """
        candidates = (self.home / f"{name}{suffix}" for suffix in ("", *SUFFIXES))
        return next((path for path in candidates if path.is_file()), None)

    def path(self, name: str) -> Path:
        """
        Return the path of one file; raise `InputError` with instructions if it is missing.

        Parameters
        ----------
        name : str
            Name without a compression suffix.

        Returns
        -------
        Path
            Where it is.
        """
        results = self.find(name)
        if results is None:
            has_address = any(file.url is not None for file in self.files if file.name == name)
            how = (
                f"run: python -m experiments.datasets --fetch {self.name}"
                if has_address
                else f"get a copy on its terms ({self.terms})."
            )
            raise InputError(
                f"{name} of data set {self.name} is not in {self.home}; set CORANK_DATA to the folder that holds "
                f"{self.folder}/, or {how}"
            )
        return results

    @property
    def missing(self) -> tuple[File, ...]:
        """The missing files."""
        return tuple(file for file in self.files if self.find(file.name) is None)


def data_root() -> Path:
    """
    Return the folder of the data sets.

    Returns
    -------
    Path
        $CORANK_DATA, or ~/.cache/corank where that is not set.
    """
    return Path(os.environ.get("CORANK_DATA") or Path.home() / ".cache" / "corank")


@cache
def datasets() -> dict[str, Dataset]:
    """
    Return every data set by name.

    Returns: name to Dataset.
    """
    table = json.loads(resources.files("experiments.datasets").joinpath("catalog.json").read_text(encoding="utf-8"))
    return {row["name"]: Dataset(**{**row, "files": tuple(File(**file) for file in row["files"])}) for row in table}


def dataset(name: str) -> Dataset:
    """
    Return one data set by name.

    Parameters
    ----------
    name : str
        Such as "mq2008".

    Returns
    -------
    Dataset
        Its entry in the catalog.
    """
    entries = datasets()
    if name not in entries:
        raise InputError(f"there is no data set {name!r}; {suggest_names(name, entries.keys())}.")
    return entries[name]


def verify(entry: Dataset) -> None:
    """
    Verify the checksums of the existing files of a data set.

    Parameters
    ----------
    entry : Dataset
        The data set.
    """
    for file in entry.files:
        path = entry.find(file.name)
        if path is None:
            continue
        if hashlib.sha256(open_text(path).read().data).hexdigest() != file.sha256:
            raise InputError(f"{path} does not have the checksum of {file.name}; remove it and download it again.")


def by_hand(entry: Dataset) -> str:
    """
    Return a message about missing files that cannot be downloaded, with instructions.

    Parameters
    ----------
    entry : Dataset
        The data set.

    Returns
    -------
    str
        One sentence.
    """
    names = [file.name for file in entry.missing if file.url is None]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return (
        f"{shown} of data set {entry.name} cannot be downloaded by corank; "
        f"get a copy on its terms ({entry.terms}) and put it into {entry.home}."
    )


def fetch(entry: Dataset) -> list[Path]:
    """
    Download the missing files of a data set that have a URL; a file is written only if its checksum matches.

    Files without a URL stay missing; if no missing file has one, raise `InputError`.

    Parameters
    ----------
    entry : Dataset
        The data set.

    Returns
    -------
    list of Path
        What was written.
    """
    missing = entry.missing
    if missing and all(file.url is None for file in missing):
        raise InputError(by_hand(entry))
    written = []
    for file in missing:
        if file.url is None:
            continue
        try:
            with urllib.request.urlopen(file.url, timeout=60) as answer:
                content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise InputError(f"{file.url} cannot be downloaded ({reason(error)}); try again later.") from error
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise InputError(
                f"{file.url} returned other content than {file.name}, so no file was written; try again later."
            )
        path = entry.home / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path, overwrite=True) as scratch:
            scratch.write_bytes(content)
        written.append(path)
    return written
