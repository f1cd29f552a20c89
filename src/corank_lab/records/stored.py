"""Records as JSON values, so that a database keeps them as they were read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from corank_lab.records.records import RecordDetails, Records, RecordSource


def records_to_json(records: Records) -> dict[str, Any]:
    """
    Return records as JSON values.

    >>> found = records_from_json(records_to_json(Records(["a"], ["Tin"], [""], labels=[1])))
    >>> found.ids, found.labels.tolist()
    (['a'], [1.0])
    """
    return {
        "ids": list(records.ids),
        "titles": list(records.titles),
        "abstracts": list(records.abstracts),
        "references": [list(one) for one in records.references],
        "labels": [None if math.isnan(one) else one for one in records.labels.tolist()],
        "fields": [dict(one) for one in records.fields],
        "details": [
            {name: value for name, value in vars(one).items() if value not in (None, "", ())} for one in records.details
        ],
        "sources": [asdict(one) for one in records.sources],
    }


def records_from_json(values: Mapping[str, Any]) -> Records:
    """Return the records of JSON values."""
    labels = [math.nan if one is None else one for one in values["labels"]]
    return Records(
        values["ids"],
        values["titles"],
        values["abstracts"],
        [tuple(one) for one in values["references"]],
        np.array(labels, dtype=np.float64),
        values["fields"],
        [RecordDetails(**_tuples(one)) for one in values["details"]],
        [RecordSource(**_tuples(one)) for one in values["sources"]],
    )


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
