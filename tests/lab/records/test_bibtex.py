from __future__ import annotations

import lzma

import pytest

from corank.errors import InputError
from corank_lab.records.records import read_records
from corank_lab.records.tagged import decode_latex
from experiments.datasets.catalog import data_root
from helpers.record_samples import check_works, read

BIBTEX = r"""% a comment with an @ sign
@comment{ignored {braces}}
@string{jo = "Journal of Ore"}
@Article{roe2001,
  title = {{Tin} mining \& {\em sleep}: a trial},
  author = {Roe, Ann B. and Doe, Ben},
  year = 2001, month = may,
  journal = jo,
  abstract = "Rats {sleep} in tin mines. Effects were large (p {\textless} 0.05).",
  doi = {https://doi.org/10.1000/ore.1},
  pmid = {12345678},
  keywords = {tin, deep sleep},
  url = {https://ore.example/1},
}

@inproceedings(coe1999,
  title = "Gold " # {dust},
  date = {1999-03},
  abstract = {},
)
"""


WITHOUT_STRINGS = BIBTEX.split("\n", 3)[3].replace("= jo", "= {Journal of Ore}")


@pytest.mark.parametrize("text", [BIBTEX, BIBTEX.replace("\n", "\r\n"), BIBTEX.replace("  ", "\t"), WITHOUT_STRINGS])
def test_bibtex(text, tmp_path):
    found = read(tmp_path, text, "works.txt")
    check_works(found, "BibTeX")
    assert found.ids == ["roe2001", "coe1999"]
    assert found.fields[0]["title"] == [r"{Tin} mining \& {\em sleep}: a trial"]
    assert found.fields[0]["type"] == ["article"]


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"{\"O}zg{\"u}r", "Özgür"),
        (r"Erd\H{o}s and \'{E}va \v{C}apek", "Erdős and Éva Čapek"),
        (r"\'i\`{\i}\^\i", "íìî"),
        (r"Stra{\ss}e \o{} \L{}\'od\'z", "Straße ø Łódź"),
        (r"100\% \$5 A\_b \{x\}", "100% $5 A_b {x}"),
        (r"\textit{in vivo} $\alpha$", "in vivo $α$"),
        ("plain {T}ext", "plain Text"),
    ],
)
def test_latex(latex, plain):
    assert decode_latex(latex) == plain


def test_keys_that_occur_twice_or_are_missing(tmp_path):
    found = read(
        tmp_path, "@article{a, title={Tin}}\n@article{a, title={Ore}}\n@article{title={Gold}}\n@misc{, title={Zinc}}\n"
    )
    assert found.titles == ["Tin", "Ore", "Gold", "Zinc"]
    assert len(set(found.ids)) == 4
    assert "a" not in found.ids


def test_a_missing_brace_costs_one_entry(tmp_path):
    text = "@article{a, title={Tin}, abstract={open\n}\n\n@article{b,\n title={Ore}}\n"
    found = read(tmp_path, text)
    assert found.titles == ["Tin", "Ore"]
    assert found.sources[0].remarks == (
        "Braces or quotes do not match in 1 entries, first at line 1; what comes before the fault was read.",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@article{a, title={\n" * 200, "braces or quotes do not match, as in more than 100 other entries"),
        ('@string{a="' + "x" * 99 + '"}\n' + "@string{a = a # a # a}\n" * 99, "strings that multiply each other"),
        ("@article{a, author={Roe}}", r"\(BibTeX\) has no titles; it has the fields type, key, author"),
    ],
)
def test_hostile_bibtex_is_refused(text, message, tmp_path):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_bibtexparser_reads_the_same(tmp_path):
    bibtexparser = pytest.importorskip("bibtexparser")
    original = data_root() / "record_exports" / "zotero_export.bib.xz"
    if not original.exists():
        pytest.skip("needs record_exports under CORANK_DATA")
    found = read_records(original)
    library = bibtexparser.parse_string(lzma.decompress(original.read_bytes()).decode())
    assert [entry.key for entry in library.entries] == found.ids
    for entry, fields in zip(library.entries, found.fields, strict=True):
        for field in entry.fields:
            assert fields[field.key.lower()] == [field.value.strip()]
