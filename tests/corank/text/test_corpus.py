"""Corpus: against counts by Python's own means; files, Unicode, and more documents."""

from __future__ import annotations

import json
import lzma
import struct
from collections import Counter

import numpy as np
import pytest

from corank.errors import InputError
from corank.text import (
    BM25,
    Corpus,
    Words,
    add_documents,
    open_corpus,
    read_corpus,
    read_pairs,
    read_texts,
    save_corpus,
)

TEXTS = [
    "Tin, tin and IRON",
    "",
    "the of",
    "naïve Café ﬁn-de-siècle",
    "日本語 テキスト",
    "a b c 42 x_1",
    "Straße STRASSE",
]


def as_counters(corpus):
    X = corpus.counts.toarray()
    return [{corpus.terms[j]: int(row[j]) for j in np.flatnonzero(row)} for row in X]


def test_words_are_counted():
    found = as_counters(Corpus.of(TEXTS, language=None))
    assert found == [
        {"tin": 2, "iron": 1}, {}, {}, {"naïve": 1, "café": 1, "fin": 1, "siècle": 1}, {"日本語": 1, "テキスト": 1},
        {"42": 1, "x_1": 1}, {"strasse": 2},
    ]  # fmt: skip


def test_many_documents_are_counted_in_batches(monkeypatch):
    monkeypatch.setattr("corank.text.corpus._BATCH", 50)
    rng = np.random.default_rng(0)
    lists = [rng.choice([f"w{n}" for n in range(80)], rng.integers(0, 40)).tolist() for _ in range(60)]
    corpus = Corpus.of((" ".join(words) for words in lists), (f"d{n}" for n in range(60)), language=None)
    assert as_counters(corpus) == [dict(Counter(words)) for words in lists]
    np.testing.assert_array_equal(corpus.lengths, [len(words) for words in lists])
    X = corpus.counts.toarray()
    np.testing.assert_array_equal(corpus.document_frequency, (X > 0).sum(axis=0))
    kept = rng.permutation(60)[:20]
    assert as_counters(corpus.subset(kept)) == [dict(Counter(lists[at])) for at in kept]


def test_stems_and_stop_words():
    corpus = Corpus.of(["prices pricing priced the the", "Häuser"], language="english", stop_words=["häuser"])
    assert as_counters(corpus) == [{"price": 3, "the": 2}, {}]
    assert as_counters(Corpus.of(["Häuser des Hauses"], language="german", stop_words=None))[0]["haus"] == 2


def test_queries_are_counted_as_far_as_words_are_known():
    corpus = Corpus.of(["tin prices", "iron"], language=None)
    bags = corpus.count(["Tin tin unheard", "", "iron TIN"])
    assert bags.starts.tolist() == [0, 1, 1, 3]
    assert [corpus.terms[at] for at in bags.terms] == ["tin", "iron", "tin"]
    assert bags.values.tolist() == [2, 1, 1]
    assert corpus.n_terms == 3


def test_documents_are_added():
    texts = [*TEXTS, "tin again", "new words"]
    whole = Corpus.of(texts, language=None)
    parts = Corpus.of(texts[:4], language=None).add(texts[4:], range(4, 9))
    assert as_counters(parts) == as_counters(whole)
    assert parts.ids.tolist() == whole.ids.tolist()
    np.testing.assert_array_equal(parts.lengths, whole.lengths)
    with pytest.raises(InputError, match="two documents have the id '0'"):
        parts.add(["tin"], [0])


def test_an_opened_index_gives_the_same_results(tmp_path):
    corpus = Corpus.of(TEXTS, [f"d{n}-é" for n in range(len(TEXTS))], stop_words=["of"])
    save_corpus(corpus, tmp_path / "some.index")
    again = open_corpus(tmp_path / "some.index")
    assert again.ids.tolist() == corpus.ids.tolist()
    assert again.words == corpus.words
    queries = ["tin iron", "café the of", "42", "never"]
    for one, other in zip(*(BM25().to_index(c).search(queries, 3) for c in (corpus, again)), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(InputError, match="exists already"):
        save_corpus(corpus, tmp_path / "some.index")
    save_corpus(again.add(["more tin"], ["new"]), tmp_path / "some.index", overwrite=True)
    assert open_corpus(tmp_path / "some.index").n_documents == len(TEXTS) + 1


def test_a_corpus_without_words_is_one_too(tmp_path):
    corpus = Corpus.of(["", "the"])
    save_corpus(corpus, tmp_path / "empty.index")
    again = open_corpus(tmp_path / "empty.index")
    assert BM25().to_index(again).search(["tin", ""]).documents.tolist() == [[-1, -1], [-1, -1]]
    none = Corpus.of([])
    assert BM25().to_index(none).search("tin").documents.tolist() == [[-1]]


def test_files_of_documents(tmp_path):
    entries = [{"id": "a", "title": "Tin", "text": "is soft"}, {"_id": 7, "contents": "iron"}]
    (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, entries)) + "\n\n")
    with lzma.open(tmp_path / "some.tsv.xz", "wt") as file:
        file.write("b\twheat\tcorn\r\nc\t\n")
    (tmp_path / "folder" / "sub").mkdir(parents=True)
    (tmp_path / "folder" / "sub" / "gold.txt").write_text("gold")
    (tmp_path / "folder" / "ore.txt").write_text("öre", encoding="utf-8")
    paths = [tmp_path / name for name in ("some.jsonl", "some.tsv.xz", "folder")]
    corpus = read_corpus(paths, language=None)
    assert corpus.ids.tolist() == ["a", "7", "b", "c", "ore", "sub/gold"]
    assert as_counters(corpus)[:4] == [{"tin": 1, "soft": 1}, {"iron": 1}, {"wheat": 1, "corn": 1}, {}]
    (tmp_path / "more.tsv").write_text("z\ttin")
    assert add_documents(corpus, tmp_path / "more.tsv").ids[-1] == "z"
    (tmp_path / "links.tsv").write_text("# source target\na\tb\n\nb\tc\n")
    assert read_pairs(tmp_path / "links.tsv") == [("a", "b"), ("b", "c")]
    assert read_texts(tmp_path / "more.tsv") == {"z": "tin"}


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.jsonl", "[1]", "line 1: expected one JSON object"),
        ("x.jsonl", '\n{"text": "tin"}', "line 2: the document has no id"),
        ("x.jsonl", '{"id": 1}', "line 1: the document has no text"),
        ("x.tsv", "tin", "expected an id, a tab and a text"),
        ("x.tsv", "a\ttin\na\tiron", "two documents have the id 'a'"),
    ],
)
def test_faults_of_files_are_named(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence):
        read_corpus(tmp_path / name, language=None)


def test_other_faults_are_named(tmp_path):
    (tmp_path / "links.tsv").write_text("a b\n")
    with pytest.raises(InputError, match="line 1: 1 columns; write two"):
        read_pairs(tmp_path / "links.tsv")
    with pytest.raises(InputError, match=r"contains no \.txt file"):
        read_corpus(tmp_path)
    with pytest.raises(InputError, match="does not exist; make an index"):
        open_corpus(tmp_path / "none.index")
    (tmp_path / "x.tsv").write_text("a\ttin\na\tiron")
    with pytest.raises(InputError, match="has two texts with the id 'a'"):
        read_texts(tmp_path / "x.tsv")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Corpus.of("tin"), "texts is one str; pass a list"),
        (lambda: Corpus.of(["tin", 3]), "document 1 is a int; pass texts"),
        (lambda: Corpus.of(["tin"], ["a", "b"]), "ids has 2 values for 1 documents"),
        (lambda: Corpus.of(["tin", "iron"], ["a", "a"]), "two documents have the id 'a'"),
        (lambda: Corpus.of(["tin"], language="klingon"), "language is 'klingon'"),
        (lambda: Corpus.of(["tin"], stop_words="german"), "stop_words is 'german'"),
        (lambda: Words.of(None, [1]), "stop_words has an entry that is not a string"),
        (lambda: BM25().to_index(Corpus.of(["tin"])).search("tin", 0), "k is 0"),
        (
            lambda: BM25().to_index(Corpus.of(["tin"])).search(Corpus.of(["tin ore"]).count(["ore"])),
            "are not in this corpus",
        ),
    ],
)
def test_what_is_wrong_is_said(call, sentence):
    with pytest.raises(InputError, match=sentence):
        call()


def test_a_damaged_index_is_refused(tmp_path):
    corpus = Corpus.of(["aa cc cc", "bb bb bb"], language=None, stop_words=None)
    path = tmp_path / "some.index"
    save_corpus(corpus, path)
    good = path.read_bytes()
    header = 8 + struct.unpack("<Q", good[:8])[0]
    refused = 0
    for at in range(len(good)):
        bad = bytearray(good)
        bad[at] ^= 0x40
        path.write_bytes(bad)
        try:
            opened = open_corpus(path)
        except InputError:
            refused += 1
            continue
        # other names are no fault that can be seen; kernels must be safe
        BM25().to_index(opened).search(["0 1 2"], 2)
    assert refused > (len(good) - header) / 2
    for stop in (0, 5, header, len(good) - 1):
        path.write_bytes(good[:stop])
        with pytest.raises(InputError):
            open_corpus(path)


def test_texts_of_other_encodings_and_kinds_are_refused(tmp_path):
    table, lines, folder = tmp_path / "t.tsv", tmp_path / "t.jsonl", tmp_path / "texts"
    table.write_bytes(b"x0\tiron\nx1\tcaf\xe9 iron\n")
    lines.write_bytes(b'{"id": "a", "text": "caf\xe9"}\n')
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"caf\xe9")
    for place, where in ((table, "line 2"), (lines, "line 1"), (folder, "a.txt")):
        with pytest.raises(InputError, match=f"{where} is not UTF-8 at byte"):
            read_corpus(place)
    lines.write_text('{"id": "a", "title": "iron", "text": ["ore", "mine"]}\n')
    with pytest.raises(InputError, match="is not a string; write each as one string"):
        read_corpus(lines)
