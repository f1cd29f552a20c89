"""Kernels and views."""

from corank.kernels.kernel import Gram, Kernel
from corank.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.kernels.radial import ARDKernel, ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.kernels.sums import SumKernel
from corank.kernels.user import KERNELS, CallableKernel, PrecomputedKernel, as_kernel
from corank.kernels.views import View

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
