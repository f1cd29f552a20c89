"""What docstrings and help texts share: descriptions of parameters, and the entries of registries."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, get_args

from corank.parameters import AboveZero, Conversion, LossName, Missing, QueryWeight, Targets


def _listed(choices: Any) -> str:
    """Return the values of a type in quotes."""
    return ", ".join(f'"{name}"' for name in get_args(choices))


SHARED = {
    "above_zero": f"""
        above_zero : {{{_listed(AboveZero)}}}
            Which relevant labels must be above the zero point: all of them, or only the lowest one of a top list, as
            in section 3 of the paper. "lowest" was measured to be worse: Kendall's distance of top lists 0.301 against
            0.288 on sushi, 0.087 against 0.082 on synthetic lists.
    """,
    "basis": """
        basis : {"random", "kmeans++"} or array-like of int
            How basis rows are chosen among the training rows, or the numbers of these rows.
    """,
    "conversion": f"""
        conversion : {{{_listed(Conversion)}}}
            Which pairs of an order are constraints: all of them, or neighbours only.
    """,
    "early_stopping": """
        early_stopping : bool
            Whether to hold out a share of the judgements and stop when the error on them no longer falls.
    """,
    "fitted_labels": """
        classes_ : array of shape (n_labels,)
            The labels: classes, column names of y if it is a frame, or numbers from 0.
        kind_ : str
            Kind of the targets, and form of predictions.
        is_calibrated_ : bool
            Whether the targets determine the zero point.
    """,
    "kernel": """
        kernel : str, Kernel or callable
            Similarity of rows: "linear", "gaussian" (or "rbf"), "polynomial", "laplacian", "chi-square", "cosine",
            "precomputed" if X holds similarities to the training rows, or a name of `corank.base.kernels.KERNELS`.
            A callable takes two sequences of rows, which may be any objects, and returns their Gram matrix.
    """,
    "learn": """
        learn : bool
            Whether the kernel's parameters maximise the evidence; otherwise they stay as given, or as set by the median
            distance.
    """,
    "loss": f"""
        loss : {{{_listed(LossName)}}}
            ℓ, see `corank.base.pairs.losses.Loss`.
    """,
    "missing": f"""
        missing : {{{_listed(Missing)}}}
            What to do about NaN in X. "mean" fills in the mean of the column over the training rows that have a value,
            and adds an indicator column for each column with missing values, so that `coef_` is longer than a row.
            ``predict`` uses the same means, as it scores each row without query ids, also for columns without missing
            values in ``fit``; if no column had any, it raises. "error" raises for every NaN. Infinity always raises.
    """,
    "n_iter_no_change": """
        n_iter_no_change : int
            Number of measurements without improvement after which early stopping ends the fit.
    """,
    "n_jobs": """
        n_jobs : int, optional
            Number of threads. None means 1, -1 means all processors. The result does not depend on it.
    """,
    "n_restarts": """
        n_restarts : int
            Number of further random starting points when hyper-parameters are learnt.
    """,
    "query_weight": f"""
        query_weight : {{{_listed(QueryWeight)}}}
            Weight of a query: proportional to its number of pairs, equal, or proportional to its number of rows.
    """,
    "random_state": """
        random_state : int, RandomState or None
            Random seed.
    """,
    "scale": """
        scale : bool
            Whether to divide columns by their standard deviation inside queries before learning. `coef_` refers to
            the columns as given.
    """,
    "targets": f"""
        targets : {{{_listed(Targets)}}}
            How to read y: "classes", one per row; "relevant", a table of 0 and 1; "ranks", positions of labels, 1 for
            the best; "top", the same with 0 for irrelevant labels. "auto" distinguishes classes from tables of 0 and
            1. `LabelPreferences` need no `targets`.
    """,
    "validation_fraction": """
        validation_fraction : float
            Share of the judgements that early stopping holds out.
    """,
    "verbose": """
        verbose : bool
            Whether to show a progress bar on a terminal or in a notebook.
    """,
}
"""Description of each shared parameter, in numpydoc's form."""

_PLACE = re.compile(r"^( *)\{(\w+)\}$", flags=re.MULTILINE)
Class = TypeVar("Class", bound=type)


def shared_parameters(cls: Class) -> Class:
    """
    Replace lines such as ``{random_state}`` in the docstring of a class by the shared description of that parameter.

    Indented lines that follow are added to the description.

    cls: its docstring names at least one entry of `SHARED`; an unknown name raises `KeyError`.

    >>> @shared_parameters
    ... class Example:
    ...     '''
    ...     Parameters
    ...     ----------
    ...     {random_state}
    ...     '''
    >>> print(Example.__doc__)
    <BLANKLINE>
        Parameters
        ----------
        random_state : int, RandomState or None
            Random seed.
    <BLANKLINE>
    """
    if cls.__doc__ is not None:  # python -OO drops docstrings
        cls.__doc__ = _PLACE.sub(lambda match: _indented(SHARED[match[2]], match[1]), cls.__doc__)
    return cls


def _indented(text: str, margin: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip(), margin)


def first_sentence(entry: Any) -> str:
    """Return the text of an entry of a registry, or the first sentence of its docstring, without the full stop."""
    if isinstance(entry, str):
        return entry
    return " ".join(re.split(r"[.;]\s", inspect.cleandoc(entry.__doc__ or "") + " ")[0].split()).replace("``", "`")


def list_choices(entries: Mapping[str, Any], quote: str = "") -> str:
    """Return the names of a registry with a text on each, for the help of an option."""
    texts = {f"{quote}{name}{quote}": first_sentence(entry).replace("`", "") for name, entry in entries.items()}
    *most, last = (f"{name} ({text[:1].lower()}{text[1:]})" for name, text in texts.items())
    return f"{', '.join(most)} or {last}"


def fill_choices(function: Callable[..., Any], entries: Mapping[str, Any]) -> None:
    """Replace ``{choices}``, alone on a line of a docstring, by the entries of a registry."""
    if function.__doc__ is not None:
        text = textwrap.fill(f"{list_choices(entries, chr(34))}.", 108)
        function.__doc__ = re.sub(
            r"^( *)\{choices\}$", lambda match: textwrap.indent(text, match[1]), function.__doc__, flags=re.MULTILINE
        )
