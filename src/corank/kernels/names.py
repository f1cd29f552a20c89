"""Kernels by name."""

from __future__ import annotations

from typing import Any

from corank.errors import InputError
from corank.kernels.ard import ARDKernel
from corank.kernels.kernel import Kernel
from corank.kernels.products import CosineKernel, LinearKernel, PolynomialKernel
from corank.kernels.radial import ChiSquareKernel, GaussianKernel, LaplacianKernel
from corank.kernels.user import CallableKernel, PrecomputedKernel

KERNELS: dict[str, type[Kernel]] = {
    "linear": LinearKernel,
    "polynomial": PolynomialKernel,
    "gaussian": GaussianKernel,
    "rbf": GaussianKernel,
    "ard": ARDKernel,
    "laplacian": LaplacianKernel,
    "chi-square": ChiSquareKernel,
    "cosine": CosineKernel,
    "precomputed": PrecomputedKernel,
}


def as_kernel(kernel: Any) -> Kernel:
    """
    Make a kernel from a name, a function, or a kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A name of `KERNELS` (with default parameters), a function of (X, Z), or a kernel.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> as_kernel("gaussian")
    GaussianKernel(gamma='median')
    """
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return CallableKernel(kernel)
    raise InputError(f"kernel is {kernel!r}; choose one of {', '.join(KERNELS)}, or pass a Kernel or a function.")
