"""What a Laplacian is made of (pairs, edges) and applied to (vectors, blocks, CSR matrices in quadratic forms)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from corank.errors import InputError

Array = NDArray[Any]

# weights that differ by less, relative to the largest, were rounded differently
_SYMMETRIC = 1e-12


def operands(V: Any, out: Array | None, shape: tuple[int, int]) -> tuple[Array, Array]:
    """Check V (shape[1] rows) and `out` (shape[0] rows, made where None); float32 stays float32."""
    if sparse.issparse(V):
        raise InputError("the operand is a sparse matrix, whose product is dense; multiply it first: L @ (X @ v).")
    block = np.asarray(V)
    block = np.ascontiguousarray(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
    if block.ndim not in (1, 2) or block.shape[0] != shape[1]:
        raise InputError(f"the operand has shape {block.shape}; pass a vector or block of {shape[1]} rows.")
    wanted = (shape[0], *block.shape[1:])
    if out is None:
        return block, np.empty(wanted, dtype=block.dtype)
    if out.shape != wanted or out.dtype != block.dtype or not out.flags.c_contiguous:
        raise InputError(f"out has shape {out.shape} and type {out.dtype}; pass a C-ordered {block.dtype} {wanted}.")
    return block, out


def as_columns(V: Any, n: int) -> Any:
    """Return a vector as one column, and a block, dense or CSR, as it is."""
    block = V.tocsr() if sparse.issparse(V) else np.asarray(V)
    if block.ndim not in (1, 2) or block.shape[0] != n:
        raise InputError(f"the operand has shape {block.shape}; pass a vector or block of {n} rows.")
    return block[:, None] if block.ndim == 1 else block


def as_given(total: NDArray[np.float64], U: Any, V: Any) -> Any:
    """Drop the axes of operands that were vectors."""
    total = total[0] if np.ndim(U) == 1 and not sparse.issparse(U) else total
    total = total[..., 0] if np.ndim(V) == 1 and not sparse.issparse(V) else total
    return float(total) if total.ndim == 0 else total


def as_dense(block: Any) -> NDArray[np.float64]:
    """Return a block, dense or CSR, as a dense float64 array."""
    return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)


def as_ends(pairs: ArrayLike, n: int) -> NDArray[np.int64]:
    """Check pairs of row numbers below n, and return a copy of them."""
    ends = np.asarray(pairs)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InputError(f"pairs has shape {ends.shape} and type {ends.dtype}; pass integers of shape (n_pairs, 2).")
    if ends.size and (ends.min() < 0 or ends.max() >= n):
        worst = ends.min() if ends.min() < 0 else ends.max()
        raise InputError(f"pairs names row {worst}, but there are rows 0 to {n - 1}; pass row numbers.")
    return ends.astype(np.int64)


def as_edges(W: Any) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Check a symmetric graph and return its edges, their weights and the number of rows."""
    graph = sparse.csr_array(W, dtype=np.float64)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise InputError(f"the graph has shape {graph.shape}; pass a square matrix of weights.")
    if not (np.isfinite(graph.data) & (graph.data >= 0)).all():
        raise InputError("the graph has a negative or infinite weight or NaN; pass finite weights of at least 0.")
    asymmetry = abs(graph - graph.T)
    if asymmetry.nnz and asymmetry.max() > _SYMMETRIC * graph.max():
        raise InputError("the graph is not symmetric; pass W with W[i, j] = W[j, i], such as (W + W.T) / 2.")
    edges = sparse.triu(graph, k=1, format="coo")
    linked = edges.data > 0
    ends = np.stack([edges.row[linked], edges.col[linked]], axis=1).astype(np.int64)
    return ends, edges.data[linked], graph.shape[0]
