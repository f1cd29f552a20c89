"""Index files that were cut or overwritten while open, or that somebody forged: one sentence each, never a signal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from corank.errors import InputError
from corank.text import Corpus
from corank.text.files import open_corpus, save_corpus
from fuzz.index import KEY
from fuzz.safetensors import Parts

TEXTS = ["tin is soft", "iron and tin rust", "gold coins, gold mines"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    save_corpus(Corpus.of(TEXTS, ["a", "b", "c"], language=None), tmp_path / "some.index")
    return tmp_path / "some.index"


USES = """
import os, sys
import corank
from corank.errors import InputError
from corank.text import Links
from corank.text.files import open_corpus, save_corpus

path = sys.argv[1]
corpus = open_corpus(path)
index = corank.BM25().to_index(corpus)
learnt = corank.LinkLearn(n_hidden=1, n_steps=1, random_state=0).fit(Links.of(corpus, [("a", "b")]))
corpus = open_corpus(path)  # without what the other has computed
CHANGE
uses = {
    "search": lambda: index.search("tin"), "scores": lambda: index.scores("tin"), "bags": lambda: corpus.bags,
    "counts": lambda: corpus.counts, "frequency": lambda: corpus.document_frequency, "mean": lambda: corpus.mean_length,
    "bm25": lambda: corank.BM25().to_index(corpus), "link": lambda: learnt.to_index(corpus),
    "links": lambda: Links.of(corpus, [("a", "b")]).lengths.sum(), "add": lambda: corpus.add(["x"], ["y"]),
    "subset": lambda: corpus.subset([0]), "save": lambda: save_corpus(corpus, path + "2"),
}
for name, use in uses.items():
    try:
        use()
    except InputError as error:
        print(name, CHANGED in str(error))
    else:
        print(name, "was read")
"""


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("os.truncate(path, 100)", "truncated"),
        # the same size, but with indices that point far behind the ends of arrays
        ("size = os.path.getsize(path); open(path, 'r+b').write(b'\\x7f' * size)", "overwritten"),
    ],
)
def test_an_index_changed_after_opening_gets_a_sentence_and_no_signal(path: Path, change: str, found: str) -> None:
    # larger than a page, or its end could still be read
    save_corpus(Corpus.of([f"word{i} tin" for i in range(3000)], language=None), path, overwrite=True)
    code = USES.replace('("a", "b")', '("0", "1")').replace("CHANGED", repr(found)).replace("CHANGE", change)
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    words = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert len(words) == 12
    assert {name for name, word in words.items() if word != "True"} == set()


@pytest.mark.parametrize(
    "change",
    [
        {"stop_words": ["a", {}]}, {"stop_words": [["a"]]}, {"stop_words": [1]}, {"stop_words": {"a": 1}},
        {"stop_words": None}, {"language": []}, {"language": 3}, {"language": "klingon"}, {"format": "1"},
        {"format": []},
    ],
)  # fmt: skip
def test_a_header_of_odd_types_is_refused(path: Path, change: dict) -> None:
    parts = Parts.of(path.read_bytes(), KEY)
    parts.header |= change
    path.write_bytes(parts.sealed())
    with pytest.raises(InputError):
        open_corpus(path)


@pytest.mark.parametrize("header", [None, [], 3, "index", [[[]]], {}])
def test_another_header_is_refused(path: Path, header: object) -> None:
    parts = Parts.of(path.read_bytes(), KEY)
    parts.header = header
    path.write_bytes(parts.sealed())
    with pytest.raises(InputError, match=r"is not an index|of another format"):
        open_corpus(path)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("docs", lambda a: a + 3, "postings of documents that do not exist"),
        ("counts", lambda a: 0 * a, "postings of documents that do not exist"),
        ("counts", lambda a: a + 1, "lengths of its documents differ"),
        ("docs", lambda a: a[::-1] * 0 + 1, "documents of a word are not ascending"),
        ("starts", lambda a: a[::-1], "not ascending"),
        ("starts", lambda a: a[:-1], "differ in length"),
        ("lengths", lambda a: -a, "lengths of its documents differ"),
        ("id_stops", lambda a: a[::-1], "not ascending"),
        ("id_bytes", lambda a: 0 * a + 0xFF, "not UTF-8"),
        ("id_bytes", lambda a: 0 * a + 0x1B, "control characters"),
        ("id_bytes", lambda a: 0 * a + ord(" "), "an id is empty"),
        ("id_bytes", lambda a: 0 * a + ord("a"), "two documents or words are equal"),
    ],
)
def test_postings_that_a_kernel_could_follow_astray_are_refused(path: Path, name: str, change, sentence: str) -> None:
    parts = Parts.of(path.read_bytes(), KEY)
    kind, _, body = parts.tensors[name]
    dtype = {"U64": "<u8", "U32": "<u4", "I64": "<i8", "U8": "u1"}[kind]
    changed = np.ascontiguousarray(change(np.frombuffer(body, dtype))).astype(dtype)
    parts.tensors[name] = (kind, [len(changed)], changed.tobytes())
    path.write_bytes(parts.sealed())
    with pytest.raises(InputError, match=f"is damaged: .*{sentence}"):
        open_corpus(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a named pipe; pass a regular file"):
        open_corpus(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a folder; pass a regular file"):
        open_corpus(tmp_path)
