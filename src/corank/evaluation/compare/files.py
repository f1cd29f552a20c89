"""A study as files: ``study.json`` and the model of the winner."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corank.data.durable.atomic import atomic_file, naming_faults
from corank.errors import InputError
from corank.evaluation.compare.values import Study
from corank.metrics import Evaluation

STUDY, MODEL, RESULTS = "study.json", "model.safetensors", "results"
"""What stands in the folder of a study, besides a report."""


def prepare(folder: Path, fingerprint: str, overwrite: bool) -> None:
    """
    Make the folder of a study, or take up the one that stands there.

    fingerprint: of the data; a folder that holds a study of other data is refused.
    overwrite: whether that study may be replaced; what was learnt for it stays.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a folder is to be written; choose another name.")
    with naming_faults(folder):
        (folder / RESULTS).mkdir(parents=True, exist_ok=True)
    if overwrite:
        return
    if (folder / STUDY).exists():
        try:
            held = json.loads((folder / STUDY).read_text())["data"]["fingerprint"]
        except (OSError, ValueError, KeyError, TypeError):
            held = None
        if held != fingerprint:
            raise InputError(
                f"{folder} holds a study of other data; choose another folder, or replace it with overwrite=True."
            )
    elif (folder / MODEL).exists():
        raise InputError(f"{folder / MODEL} exists already; choose another folder, or replace it with overwrite=True.")


def write_study(study: Study, folder: Path) -> Path:
    """
    Write ``study.json``.

    Returns: its path.
    """
    with naming_faults(folder / STUDY), atomic_file(folder / STUDY, overwrite=True) as scratch:
        scratch.write_text(json.dumps(study_record(study), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return folder / STUDY


def keep_model(source: Path, folder: Path) -> Path:
    """
    Put the winner's model into the folder of a study.

    Returns: its path.
    """
    with naming_faults(folder / MODEL), atomic_file(folder / MODEL, overwrite=True) as scratch:
        shutil.copyfile(source, scratch)
    return folder / MODEL


def study_record(study: Study) -> dict[str, Any]:
    """Return a study as JSON has it: NaN is null, an evaluation holds the values of every query."""
    record: dict[str, Any] = {
        one.name: _plain(getattr(study, one.name)) for one in fields(study) if one.name != "ranker"
    }
    return record


def _plain(value: Any) -> Any:
    if isinstance(value, Evaluation):
        return {
            "convention": value.convention.name,
            "queries": [str(query) for query in value.query_ids.tolist()],
            "n_single_grade_queries": value.n_single_grade,
            "n_unjudged_rows": value.n_unjudged_rows,
            "metrics": {
                name: {"mean": _plain(one.mean), "n_used": one.n_used, "values": _plain(one.values)}
                for name, one in value.items()
            },
        }
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value
