"""What to say about a line of LETOR text that cannot be read: file, line, column, what was expected and found."""

from __future__ import annotations

import numpy as np

from corank.core import parse as kernels
from corank.data.compressed import Text
from corank.data.pieces import LARGEST_ID, Fault, Pieces
from corank.errors import InputError


def explain(pieces: Pieces, fault: Fault, rules: kernels.Rules, n_features: int | None) -> InputError:
    """
    Turn a fault into a sentence with file, line and column.

    fault: where the parser stopped.
    rules: how it read.
    n_features: the number of features the user asked for.
    Returns: to be raised.
    """
    k = int(np.searchsorted(pieces.bases, fault.position, side="right")) - 1
    text, at = pieces.texts[k], fault.position - int(pieces.bases[k])
    line, column = text.locate(at)
    reason = _reason(text, at, fault.code, rules, n_features)
    return InputError(f"{text.path}, line {line}, column {column}: {reason}.")


def _reason(text: Text, at: int, code: int, rules: kernels.Rules, n_features: int | None) -> str:
    token = text.mapped[at : at + 200].split(maxsplit=1)[:1]
    found = token[0] if token and not text.mapped[at : at + 1].isspace() else b""
    shown = f"found {found.decode(errors='replace')[:40]!r}" if found else "found the end of the line"
    if any(c < 9 or 13 < c < 27 for c in found):
        return "found bytes that are not text; expected lines of 'label qid:Q id:value ...'"
    if code == kernels.NO_ROOM:
        return "the file changed while it was read; read it again"
    if code == kernels.BAD_LABEL:
        return f"expected a label, a finite number, {shown}"
    if code == kernels.BAD_QID:
        return f"expected qid: and an id, as the first row of the file has, {shown}"
    if found.startswith(b"qid:"):
        return f"expected id:value, {shown}; the first row of the file has no qid, so no row may have one"
    name = found.partition(b":")[0].decode(errors="replace")[:40]
    if code in (kernels.BAD_ID, kernels.ID_RANGE) and name.isdigit() and int(name) > (n_features or LARGEST_ID):
        limit = f"the last of n_features={n_features}" if n_features else str(LARGEST_ID)
        return f"expected a feature id up to {limit}, found {name}"
    if code == kernels.ID_ORDER:
        return f"expected feature ids that count from 1 and rise along the line, found {name}"
    if code == kernels.BAD_ID:
        return f"expected id:value, {shown}"
    if code == kernels.LARGE_VALUE and np.isfinite([rules.too_large, float(found.partition(b"#")[0])]).all():
        return f"expected a value in the range of float32, {shown}; read with dtype=float64"
    return f"expected a finite value, {shown}"
