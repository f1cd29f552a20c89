"""
Decorators of kernels. Importing them does not import numba: kernels are compiled when the first of them is called.

numba takes a second to import and to start, and half a second to compile a kernel, which is longer than a small command
takes otherwise. A kernel marked as `jit_when_large` therefore runs as Python code until it has visited some thousand
numbers. Compiled or not, it gives the same bits.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np

KernelFunction = Callable[..., Any]

SMALL_ENTRIES = 1 << 20
"""Entries of arrays that numpy visits in place of kernels; later calls compile."""

PYTHON_ENTRIES = 200_000
"""Entries of the arrays on which a process runs one kernel as Python code, in at most 0.3 s; later calls compile."""


class _State:
    """
    What a process has compiled.

    kernels: kernels that wait for numba.
    modules: modules to import before the first kernel is compiled.
    entries: entries of arrays that numpy visited in place of kernels.
    """

    is_compiling = False
    kernels: list[LazyFunction] = []  # noqa: RUF012
    modules: list[str] = []  # noqa: RUF012
    entries = 0


_LOCK = RLock()


class LazyFunction:
    """
    A kernel that waits for numba.

    options: of ``numba.njit``; None for an intrinsic.
    is_small: whether it may run as Python code.
    """

    def __init__(self, function: KernelFunction, options: dict[str, Any] | None, is_small: bool) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.options, self.is_small = function, options, is_small
        self.compiled: Any = None
        self.entries = 0

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        if self.is_small:
            self.entries += sum(part.size for part in arguments if isinstance(part, np.ndarray))
            if self.entries <= PYTHON_ENTRIES:
                with np.errstate(all="ignore"):
                    return _as_python(self.py_func)(*arguments)
            self.is_small = False
        if self.compiled is None:
            compile_kernels()
        return self.compiled(*arguments)

    def __getattr__(self, name: str) -> Any:
        # what a compiled kernel offers, such as its statistics
        if name.startswith("__") or name == "compiled":
            raise AttributeError(name)
        compile_kernels()
        return getattr(self.compiled, name)


@cache
def _as_python(function: KernelFunction) -> KernelFunction:
    """Return the function of a kernel which calls the functions of other kernels, compiled or not."""
    return FunctionType(function.__code__, _python_names(function.__module__), function.__name__)


@cache
def _python_names(module: str) -> dict[str, Any]:
    """Return the names of a module with functions in place of kernels."""
    names = dict(vars(sys.modules[module]))
    functions = {name: kernel.py_func for name, kernel in names.items() if hasattr(kernel, "py_func")}
    for name, function in functions.items():
        home = names if function.__module__ == module else _python_names(function.__module__)
        names[name] = FunctionType(function.__code__, home, name)
    return names


def is_small(n_entries: int) -> bool:
    """Return whether numpy should replace a kernel, because so few numbers were visited that compiling takes longer."""
    _State.entries += n_entries
    return _State.entries <= SMALL_ENTRIES


def is_compiled() -> bool:
    """Return whether numba was imported, so that a call of a kernel costs little."""
    return _State.is_compiling


def compile_kernels() -> None:
    """Import numba and replace all waiting kernels by compiled ones, which numba finds where they were imported."""
    with _LOCK:
        compiler = import_module("corank.core.compiler")
        _State.is_compiling = True
        for kernel in _State.kernels:
            kernel.compiled = compiler.compile_kernel(kernel.py_func, kernel.options)
        waiting = {id(kernel): kernel.compiled for kernel in _State.kernels}
        for name, module in list(sys.modules.items()):
            if name.startswith("corank.core."):
                for key, value in list(vars(module).items()):
                    if isinstance(value, LazyFunction) and id(value) in waiting:
                        setattr(module, key, value.compiled)
        for kernel in _State.kernels:
            kernel.py_func.__globals__[kernel.py_func.__name__] = kernel.compiled
        _State.kernels.clear()
        while _State.modules:
            import_module(_State.modules.pop())


def before_compiling(module: str) -> None:
    """Import a module, which tells numba how to compile functions, before the first kernel is compiled."""
    if _State.is_compiling:
        import_module(module)
    else:
        _State.modules.append(module)


def _kernel(function: KernelFunction, options: dict[str, Any] | None, is_small: bool = False) -> KernelFunction:
    with _LOCK:
        if _State.is_compiling:
            compiled: KernelFunction = import_module("corank.core.compiler").compile_kernel(function, options)
            return compiled
        kernel = LazyFunction(function, options, is_small)
        _State.kernels.append(kernel)
        return kernel


def jit(function: KernelFunction) -> KernelFunction:
    """Compile a kernel that is cached on disk and releases the GIL."""
    return _kernel(function, {})


def jit_when_large(function: KernelFunction) -> KernelFunction:
    """
    Compile a kernel, or run it as Python code until it has visited `PYTHON_ENTRIES`.

    Both must give the same bits: integers are 64 bits wide and do not overflow, and no divisor is 0.
    """
    return _kernel(function, {}, is_small=True)


def relaxed(*flags: str) -> Callable[[KernelFunction], KernelFunction]:
    """Compile a kernel with fast-math flags of LLVM, so that sums and maxima are vectorised."""
    return lambda function: _kernel(function, {"fastmath": set(flags)})


def inline(function: KernelFunction) -> KernelFunction:
    """Compile a small function that is inlined into kernels; light kernels call it as Python code."""
    return _kernel(function, {"inline": "always"}, is_small=True)


def intrinsic(function: KernelFunction) -> KernelFunction:
    """Define an intrinsic of numba, for kernels only."""
    return _kernel(function, None)
