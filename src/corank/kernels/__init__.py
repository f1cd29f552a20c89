"""Kernels, basis rows and views."""

from corank.kernels.basis import Basis, Terms, as_doubles, score_columns
from corank.kernels.basis_choice import choose_basis, require_choice
from corank.kernels.features import FeatureMap, stack_features
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
from corank.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.kernels.radial import ARDKernel, ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.kernels.sums import SumKernel
from corank.kernels.user import KERNELS, CallableKernel, PrecomputedKernel, as_kernel
from corank.kernels.views import View

__all__ = [
    "INDEFINITE",
    "KERNELS",
    "RANK_TOLERANCE",
    "ARDKernel",
    "Basis",
    "CallableKernel",
    "ChiSquareKernel",
    "CosineKernel",
    "FeatureMap",
    "GaussianKernel",
    "Gram",
    "Kernel",
    "LaplacianKernel",
    "LinearKernel",
    "PolynomialKernel",
    "PrecomputedKernel",
    "SumKernel",
    "Terms",
    "View",
    "as_doubles",
    "as_kernel",
    "choose_basis",
    "indefinite",
    "inverse_root",
    "is_precomputed",
    "require_choice",
    "require_inner_product",
    "require_similarities",
    "score_columns",
    "stack_features",
]
