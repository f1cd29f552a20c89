"""What to say about a line of LETOR text that cannot be read: file, line, column, what was expected and found."""

from __future__ import annotations

from corank.core.parsing import letor as kernels
from corank.data.formats.text import BARE_RETURN, Text
from corank.data.letor.pieces import Fault, Pieces
from corank.errors import InputError

LARGEST_ID = 2**31 - 1
USUAL_ID = 1 << 24
"""Largest id where no number of features is given: every learner keeps a number for each feature up to the largest."""


def explain(pieces: Pieces, fault: Fault, n_features: int | None) -> InputError:
    """
    Turn a fault into a sentence with file, line and column.

    fault: where the parser stopped.
    n_features: the number of features the user asked for.
    Returns: to be raised.
    """
    text, at = pieces.locate(fault.position)
    line, column = text.locate(at)
    return InputError(f"{text}, line {line}, column {column}: {_reason(text, at, fault.code, n_features)}.")


def _reason(text: Text, at: int, code: int, n_features: int | None) -> str:
    if code == kernels.NO_ROOM:
        return "the file changed while it was read; read it again"
    if code == kernels.BARE_RETURN or text.has_bare_return(at):
        return BARE_RETURN
    found = text.word(at)
    shown = f"found {found.decode(errors='replace')[:40]!r}" if found else "found the end of the line"
    if any(c < 9 or 13 < c < 27 for c in found):
        return "found bytes that are not text; expected lines of 'label qid:Q id:value ...'"
    if code == kernels.BAD_LABEL:
        return f"expected a label, a finite number, {shown}"
    if code == kernels.BAD_QID:
        return f"expected qid: and an id, as the first row of the file has, {shown}"
    if found.startswith(b"qid:"):
        return f"expected id:value, {shown}; the first row of the file has no qid, so no row may have one"
    name = found.partition(b":")[0]
    # of bytes, not of text: that knows digits which are none here
    if code in (kernels.BAD_ID, kernels.ID_RANGE) and name.isdigit() and int(name) > (n_features or USUAL_ID):
        return _beyond(int(name), n_features)
    if code == kernels.ID_ORDER:
        return f"expected feature ids that count from 1 and rise along the line, found {name.decode()}"
    if code == kernels.BAD_ID:
        return f"expected id:value, {shown}"
    if code == kernels.LARGE_VALUE:
        return f"expected a value in the range of float32, {shown}; read with dtype=float64"
    return f"expected a finite value, {shown}"


def _beyond(feature: int, n_features: int | None) -> str:
    if n_features:
        return f"expected a feature id up to the last of n_features={n_features}, found {feature}"
    if feature > LARGEST_ID:
        return f"expected a feature id up to {LARGEST_ID}, found {feature}"
    return (
        f"expected a feature id up to {USUAL_ID}, found {feature}; where there are so many features, say n_features= "
        "as you read or convert it"
    )
