"""Kernels and views."""

from corank.base.kernels.kernel import KERNELS, CosineKernel, Gram, Kernel, LinearKernel, PolynomialKernel, SumKernel
from corank.base.kernels.radial import ARDKernel, ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.base.kernels.views import CallableKernel, PrecomputedKernel, View, as_kernel

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
