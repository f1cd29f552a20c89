"""
Judgements from clicks: clicks over expected clicks (COEC).

The click-through rate of position k is c_k = (clicks at k) / (documents shown at k). A document that was shown at the
positions k_1, ..., k_n of a query gets the grade

    (its clicks) / Σ_i c_{k_i} ,

so 1 means that it was clicked as often as any document at these positions. This corrects the position bias only as far
as relevance and position are unrelated in the log; `corank.clicks.position_bias` needs no such assumption.
"""

from __future__ import annotations

import numpy as np

from corank.data.collection import as_texts
from corank.data.io.click_log import ClickLog
from corank.data.io.judgements.judgement_list import JudgementList
from corank.errors import InputError


def click_judgements(log: ClickLog) -> JudgementList:
    """Return one grade for each document of a query: clicks over expected clicks."""
    kept = np.ones(len(log.qid), dtype=bool) if log.complete is None else log.complete
    if not log.clicked[kept].any():
        raise InputError("no complete list has a click, so no grades can be computed; log more lists.")
    position, clicked = log.position[kept], log.clicked[kept].astype(np.float64)
    rate = np.bincount(position, weights=clicked) / np.maximum(np.bincount(position), 1)
    pairs = list(zip(log.qid[kept].tolist(), log.docids[kept].tolist(), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(pairs))}
    code = np.array([numbers[pair] for pair in pairs])
    clicks, expected = np.bincount(code, weights=clicked), np.bincount(code, weights=rate[position])
    known = expected > 0
    y = np.round(clicks[known] / expected[known], 3)
    queries, documents = zip(*(pair for pair, is_known in zip(numbers, known, strict=True) if is_known), strict=True)
    return JudgementList(y, as_texts(list(queries)), as_texts(list(documents)))
