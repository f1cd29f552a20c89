"""The review that comes with the package: Donners 2021, of the SYNERGY collection (CC0; see reviews/ATTRIBUTION.md)."""

from __future__ import annotations

from importlib import resources

from corank.data.formats.text import open_text
from corank.data.records.records import Records, read_records

NAME = "Donners_2021.csv"
CITED = (
    "Donners et al., Pharmacokinetics and Associated Efficacy of Emicizumab in Humans: A Systematic Review (2021), "
    "from SYNERGY (De Bruin et al. 2023, doi 10.34894/HE6NAQ, CC0)"
)
"""Whom to thank for it."""

_FILE = resources.files("corank.data.records").joinpath("reviews", f"{NAME}.xz")


def load_review() -> Records:
    """
    Load a small review, judged throughout: 258 works on emicizumab, of which 15 were included in the end.

    It is Donners et al., Pharmacokinetics and Associated Efficacy of Emicizumab in Humans: A Systematic Review, 2021,
    from SYNERGY (De Bruin et al. 2023, doi 10.34894/HE6NAQ, CC0), whose makers ask to be cited.

    Returns
    -------
    Records
        With abstracts, references and labels.

    Examples
    --------
    >>> load_review()
    <Records: 258 works, 250 with abstract, 154 with references; 15 relevant, 243 not>
    """
    with resources.as_file(_FILE) as path:
        return read_records(path)


def review_text() -> bytes:
    """
    Return the review as CSV.

    Returns
    -------
    bytes
        The text, in UTF-8.
    """
    with resources.as_file(_FILE) as path:
        return open_text(path).read().tobytes()
