from __future__ import annotations

import dataclasses
import gzip
import hashlib

import pytest

from corank.errors import InputError
from experiments.datasets import catalog
from experiments.datasets.catalog import Dataset, File


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A data set of two files, one of which can be had from a local address."""
    monkeypatch.setenv("CORANK_DATA", str(tmp_path / "root"))
    source = tmp_path / "source.txt"
    source.write_bytes(b"1 qid:1 1:2\n")
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return Dataset("toy", "toy_folder", "a toy", "free", (File("part.txt", digest, source.as_uri()),)), source


def test_the_table_is_complete():
    known = catalog.datasets()
    assert {"mq2008", "jester", "movielens-1m", "reuters"} <= set(known)
    for entry in known.values():
        assert entry.files
        assert entry.about
        assert entry.terms
        assert all(len(file.sha256) == 64 for file in entry.files)


def test_fetching_checks_and_writes_once(shelf):
    entry, source = shelf
    assert entry.missing == entry.files
    (path,) = catalog.fetch(entry)
    assert path == entry.path("part.txt")
    assert path.read_bytes() == source.read_bytes()
    assert entry.missing == ()
    assert catalog.fetch(entry) == []
    catalog.verify(entry)


def test_a_wrong_download_writes_nothing(shelf):
    entry, source = shelf
    source.write_bytes(b"something else")
    with pytest.raises(InputError, match=r"returned other content than part.txt, so no"):
        catalog.fetch(entry)
    assert entry.find("part.txt") is None


def test_compressed_files_are_found_and_verified(shelf):
    entry, source = shelf
    entry.home.mkdir(parents=True)
    with gzip.open(entry.home / "part.txt.gz", "wb") as stream:
        stream.write(source.read_bytes())
    assert entry.path("part.txt").suffix == ".gz"
    catalog.verify(entry)
    with gzip.open(entry.home / "part.txt.gz", "wb") as stream:
        stream.write(b"changed")
    with pytest.raises(InputError, match=r"does not have the checksum of part.txt"):
        catalog.verify(entry)


def test_what_is_missing_gets_one_sentence(shelf):
    entry, _ = shelf
    with pytest.raises(InputError, match="set CORANK_DATA to the folder that holds"):
        entry.path("part.txt")
    by_hand = Dataset("toy", "toy_folder", "a toy", "cite us", (File("part.txt", "0" * 64),))
    with pytest.raises(InputError, match="cannot be downloaded by corank"):
        catalog.fetch(by_hand)
    with pytest.raises(InputError, match="there is no data set 'mq2009'"):
        catalog.dataset("mq2009")


def test_what_has_an_address_is_fetched_and_the_rest_is_named(shelf):
    entry, _ = shelf
    others = tuple(File(f"other{k}.txt", "0" * 64) for k in range(5))
    entry = dataclasses.replace(entry, terms="cite us", files=(*others[:1], *entry.files, *others[1:]))
    with pytest.raises(InputError, match="or get a copy on its terms"):
        entry.path("other0.txt")
    with pytest.raises(InputError, match=r"or run: python -m experiments.datasets"):
        entry.path("part.txt")
    assert catalog.fetch(entry) == [entry.path("part.txt")]
    assert entry.missing == others
    assert catalog.by_hand(entry).startswith("other0.txt, other1.txt, other2.txt and 2 more of data set toy cannot be")
    with pytest.raises(InputError, match="cannot be downloaded by corank"):
        catalog.fetch(entry)


def test_real_files_have_their_checksums(real_data):
    for name in ("mq2008", "mslr-sample", "sushi"):
        entry = catalog.dataset(name)
        assert entry.missing == (), f"{name} is not complete under {real_data}"
        catalog.verify(entry)


def test_an_address_that_does_not_answer_gets_one_sentence(shelf):
    entry, source = shelf
    source.unlink()
    with pytest.raises(InputError, match=r"source.txt cannot be downloaded"):
        catalog.fetch(entry)
    assert entry.missing == entry.files
