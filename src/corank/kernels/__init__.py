"""Kernels: how similar two rows are, as small frozen records that compute Gram matrices."""

from corank.kernels.ard import ARDKernel
from corank.kernels.given import CallableKernel, PrecomputedKernel
from corank.kernels.grams import (
    INDEFINITE,
    RANK_TOLERANCE,
    indefinite,
    inverse_root,
    is_precomputed,
    require_inner_product,
    require_similarities,
)
from corank.kernels.kernel import Gram, Kernel
from corank.kernels.names import KERNELS, as_kernel
from corank.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.kernels.radial import ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.kernels.sums import SumKernel

__all__ = [
    "INDEFINITE",
    "KERNELS",
    "RANK_TOLERANCE",
    "ARDKernel",
    "CallableKernel",
    "ChiSquareKernel",
    "CosineKernel",
    "GaussianKernel",
    "Gram",
    "Kernel",
    "LaplacianKernel",
    "LinearKernel",
    "PolynomialKernel",
    "PrecomputedKernel",
    "SumKernel",
    "as_kernel",
    "indefinite",
    "inverse_root",
    "is_precomputed",
    "require_inner_product",
    "require_similarities",
]
