"""Exact search of vectors: against all products, sorted; and files of vectors, read or refused."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from corank.errors import InputError
from corank.text import Vectors, embed_texts, read_vectors, vectors, write_vectors


def brute_force(Q, D, k, similarity):
    """All products of integers, which are exact, sorted by score and row."""
    S = Q @ D.T
    if similarity == "cosine":
        S = S / np.linalg.norm(Q, axis=1)[:, None] / np.linalg.norm(D, axis=1)
    rank = np.lexsort((np.broadcast_to(np.arange(len(D)), S.shape), -S), axis=1)[:, :k]
    return rank, np.take_along_axis(S, rank, 1)


@pytest.mark.parametrize("k", [1, 7, 40, 1000])
def test_best_documents_with_ties(monkeypatch, k):
    monkeypatch.setattr(vectors, "DOCUMENT_BLOCK", 30)
    monkeypatch.setattr(vectors, "QUERY_BLOCK", 4)
    rng = np.random.default_rng(k)
    Q, D = rng.integers(-2, 3, (9, 5)).astype(float), rng.integers(-2, 3, (200, 5)).astype(float)
    result = Vectors.of(D).search(Q, k, similarity="dot", n_jobs=2)
    documents, scores = brute_force(Q, D, k, "dot")  # many products are equal: the first rows win
    np.testing.assert_array_equal(result.documents, documents)
    np.testing.assert_array_equal(result.scores, scores)


def test_cosine_ignores_lengths_and_zeros_score_zero():
    rng = np.random.default_rng(0)
    D, Q = rng.normal(size=(50, 6)), rng.normal(size=(8, 6))
    documents, scores = brute_force(Q, D, 5, "cosine")
    result = Vectors.of(D * rng.uniform(1, 9, (50, 1))).search(Q * 3, 5)
    np.testing.assert_array_equal(result.documents, documents)
    np.testing.assert_allclose(result.scores, scores, atol=1e-6)
    assert Vectors.of([[0.0, 0.0], [1.0, 0.0]]).search([[1.0, 1.0]], 2).scores[0, 1] == 0


def test_files_of_vectors(tmp_path):
    rows = np.arange(8, dtype=np.float16).reshape(4, 2)
    np.save(tmp_path / "plain.npy", rows)
    assert read_vectors(tmp_path / "plain.npy").ids.tolist() == ["0", "1", "2", "3"]
    assert read_vectors(tmp_path / "plain.npy", ids=list("abcd")).ids.tolist() == list("abcd")
    np.savez(
        tmp_path / "both.npz", documents=rows, document_ids=["d", "c", "b", "a"], queries=rows[:2], query_ids=[7, 8]
    )
    both = read_vectors(tmp_path / "both.npz"), read_vectors(tmp_path / "both.npz", "queries")
    assert [part.ids.tolist() for part in both] == [["d", "c", "b", "a"], ["7", "8"]]
    np.testing.assert_array_equal(both[1].rows, rows[:2])
    write_vectors(tmp_path / "own.npz", Vectors.of(rows, "wxyz", "wordllama"))
    own = read_vectors(tmp_path / "own.npz")
    assert (own.ids.tolist(), own.model, own.rows.dtype) == (list("wxyz"), "wordllama", np.float16)


@pytest.mark.parametrize("is_list", [True, False])
def test_vectors_of_parquet(tmp_path, is_list):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"embedding": [[1.0, 2.0], [3.0, 4.0]]} if is_list else {"x": [1.0, 3.0], "y": [2.0, 4.0]}
    parquet.write_table(arrow.table({"doc_id": ["a", "b"], **columns}), tmp_path / "v.parquet")
    found = read_vectors(tmp_path / "v.parquet")
    assert (found.ids.tolist(), found.rows.tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    parquet.write_table(arrow.table({"id": ["a", "b"], "v": [[1.0], [3.0, 4.0]]}), tmp_path / "v.parquet")
    with pytest.raises(InputError, match="differ in length"):
        read_vectors(tmp_path / "v.parquet")


def npz(**arrays) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def bomb() -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w", force_zip64=True) as part,
    ):
        for _ in range(2000):
            part.write(bytes(1 << 20))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 damaged", "cannot be read"),
        (npz(a=np.zeros((2, 2)), b=np.zeros((2, 2))), r"has 2 matrices \(a, b\); name that of the documents"),
        (npz(a=np.array([[1.0, np.nan]])), "not finite, that of '0'"),
        (npz(a=np.zeros((2, 1)), ids=["x", "x"]), "two vectors of 'x'"),
        (npz(a=np.array([[1, 2]], dtype=object)), "cannot be read"),  # would need pickle
        (npz(ids=["x"]), "has 0 matrices"),
    ],
)
def test_damaged_files_are_refused(tmp_path, content, message):
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "v.npz")


@pytest.mark.long
def test_an_archive_that_expands_too_far_is_refused(tmp_path):
    (tmp_path / "v.npz").write_bytes(bomb())
    with pytest.raises(InputError, match="expands to more than"):
        read_vectors(tmp_path / "v.npz")


def test_shapes_must_fit(tmp_path):
    with pytest.raises(InputError, match="documents have 2 dimensions"):
        Vectors.of([[1.0, 2.0]]).search([[1.0]])
    with pytest.raises(InputError, match="2 vectors for 1 ids"):
        Vectors.of([[1.0], [2.0]], ["a"])
    with pytest.raises(InputError, match="shape"):
        Vectors.of([1.0, 2.0])
    with pytest.raises(InputError, match="does not exist"):
        read_vectors(tmp_path / "none.npy")
    (tmp_path / "v.txt").write_text("1 2\n")
    with pytest.raises(InputError, match="is not a file of vectors"):
        read_vectors(tmp_path / "v.txt")


def test_any_function_embeds_texts():
    rows = embed_texts(["a", "bb"], lambda texts: [[len(text), 1] for text in texts])
    np.testing.assert_array_equal(rows, [[1, 1], [2, 1]])
    with pytest.raises(InputError, match="for 2 texts"):
        embed_texts(["a", "bb"], lambda texts: [1, 2])
    with pytest.raises(InputError, match="the model is 'other'"):
        embed_texts(["a"], "other")


def test_static_embeddings_need_no_network():
    pytest.importorskip("wordllama")
    rows = embed_texts(["a red car", "a crimson automobile", "boil the pasta", ""])
    similarity = rows @ rows.T
    assert similarity[0, 1] > similarity[0, 2]
    assert np.isfinite(rows).all()
