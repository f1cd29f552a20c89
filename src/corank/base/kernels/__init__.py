"""Kernels and views."""

from corank.base.kernels.kernel import Gram, Kernel
from corank.base.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.base.kernels.radial import ARDKernel, ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.base.kernels.sums import SumKernel
from corank.base.kernels.user import KERNELS, CallableKernel, PrecomputedKernel, as_kernel
from corank.base.kernels.views import View

__all__ = [
    "KERNELS",
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
    "View",
    "as_kernel",
]
