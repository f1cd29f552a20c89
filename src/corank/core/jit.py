"""The decorators of the compiled core, and a hint to the processor's cache."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba.core import event, types
from numba.extending import intrinsic

Kernel = Callable[..., Any]


class CompileNotice(event.Listener):
    """
    Says once, on a terminal, that kernels are being compiled; numba is silent for what it finds in its cache.

    A program that writes to a file, a notebook or a log sees nothing of it.
    """

    def __init__(self) -> None:
        self.said = False

    def on_start(self, compiling: event.Event) -> None:
        """Speak when the first of corank's kernels is about to be compiled."""
        kernel = compiling.data["dispatcher"].py_func.__module__
        if self.said or not kernel.startswith("corank.") or sys.stderr is None or not sys.stderr.isatty():
            return
        self.said = True
        sys.stderr.write("corank: compiling for this machine, which takes some seconds, once...\n")
        sys.stderr.flush()

    def on_end(self, compiling: event.Event) -> None:
        """Say nothing."""


NOTICE = CompileNotice()
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]


def jit(function: Kernel) -> Kernel:
    """Compile a kernel once, keep it on disk, and release the GIL while it runs."""
    return cast(Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def relaxed(*flags: str) -> Callable[[Kernel], Kernel]:
    """
    Compile a kernel whose arithmetic LLVM may reorder, so that sums and maxima fill the lanes of a vector.

    *flags: LLVM's fast-math flags; with ``"nnan"`` no NaN may come in.
    """
    options: Any = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": set(flags)}
    return lambda function: cast(Kernel, numba.njit(**options)(function))


def inline(function: Kernel) -> Kernel:
    """Compile a small step that kernels share and that must cost nothing to call."""
    return cast(Kernel, numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")(function))


@intrinsic
def prefetch(typingctx, array, position):  # type: ignore[no-untyped-def]
    """Ask for the cache line of `array.flat[position]` (C-contiguous) ahead of its use."""
    signature = types.void(array, position)

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array_type = signature.args[0]
        struct = context.make_array(array_type)(context, builder, arguments[0])
        pointer = builder.gep(struct.data, [arguments[1]])
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        int32 = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), int32, int32, int32])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [ir.IntType(8).as_pointer()], kind)
        # read, high locality, data cache
        builder.call(hint, [address, int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return signature, codegen
