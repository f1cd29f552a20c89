"""Two works that the samples of every dialect describe."""

from __future__ import annotations

from pathlib import Path

from corank_lab.records.records import Records, read_records

TITLE = "Tin mining & sleep: a trial"
ABSTRACT = "Rats sleep in tin mines. Effects were large (p < 0.05)."
FACTS = {
    "year": 2001,
    "authors": ("Roe, Ann B.", "Doe, Ben"),
    "journal": "Journal of Ore",
    "doi": "10.1000/ore.1",
    "pmid": "12345678",
    "keywords": ("tin", "deep sleep"),
    "url": "https://ore.example/1",
}


def read(folder: Path, content: str | bytes, name: str = "works") -> Records:
    """Write a file and read its records."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_records(path)


def check_works(found: Records, format: str, *, without: str = "", **other: object) -> None:
    """
    Compare two records with the works; the second has only a title, a year and a note that its abstract is missing.

    without: names of `FACTS` that the dialect does not hold, with blanks between them; ``abstract`` too.
    other: facts that the dialect says differently.
    """
    assert found.sources[0].format == format
    assert found.titles == [TITLE, "Gold dust"]
    assert found.abstracts[0].replace("\n", " ") == ("" if "abstract" in without.split() else ABSTRACT)
    assert found.abstracts[1] == ""
    assert found.details[1].year == 1999
    expected = {**FACTS, **other}
    for name, value in expected.items():
        known = getattr(found.details[0], name)
        assert known == (type(value)() if name in without.split() else value), name
    assert len(set(found.ids)) == 2
