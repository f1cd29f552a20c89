"""The decorators of the compiled core, and a hint to the processor's cache."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import warnings
import zlib
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numba
from llvmlite import ir
from numba.core import event, types
from numba.core.caching import FunctionCache, NullCache
from numba.extending import intrinsic

try:
    import fcntl
except ImportError:  # on Windows every process compiles for itself
    fcntl = None  # type: ignore[assignment]

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
        """Let other processes try a kernel that could not be compiled here."""
        details = getattr(compiling, "_exc_details", None)  # `is_failed` is true whatever happened (numba 0.68)
        if details and details[0] and isinstance(cache := compiling.data["dispatcher"]._cache, Kept):
            cache.release()


NOTICE = CompileNotice()
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]


class Unkept(NullCache):
    """
    Keeps nothing, and says so once in a process, when the first kernel has been compiled.

    why: what stands in the way.
    """

    said = False

    def __init__(self, why: Exception) -> None:
        self.why = why

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Warn that this kernel will have to be compiled again."""
        if not Unkept.said:
            Unkept.said = True
            warnings.warn(
                f"compiled code cannot be kept ({self.why}), so that every process compiles it again, which takes some "
                "seconds; set the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
                RuntimeWarning,
                stacklevel=2,
            )


class Kept(FunctionCache):
    """
    Keep a kernel on disk as numba does; a damaged file, or one that cannot be written, does not stop the program.

    Of several processes that need the same kernel, one compiles it, and the others wait and load the result. numba's
    own cache has no lock: every process compiles, and two that save different signatures of one function at the same
    time can leave an index that names the code of the wrong one.
    """

    _handles: ClassVar[dict[str, int]] = {}
    """The open lock file of each folder. It stays open: to close it would release all its locks."""
    _patience = 300.0
    """Seconds to wait for another process before compiling without the lock."""
    _depth = 0

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel, or None if this process has to compile it; then the lock is held until it is saved."""
        found = self._load(signature, target_context)
        if found is None:
            self._acquire()
            found = self._load(signature, target_context)  # another process may have saved it meanwhile
            if found is not None:
                self.release()
        return found

    def _load(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            # whatever a damaged file makes of unpickling; an index without entries makes room for whole ones
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the kernel where that is possible."""
        try:
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]
        except Exception as why:
            Unkept(why).save_overload(signature, compiled)
        finally:
            self.release()

    def _acquire(self) -> None:
        """Lock this function, unless this process has done so already."""
        if self._depth == 0 and fcntl is not None:
            self._wait()
        self._depth += 1

    def _wait(self) -> None:
        """Lock one byte of the folder's lock file; go on without a lock where there can be none."""
        until = time.monotonic() + self._patience
        with contextlib.suppress(OSError):
            os.makedirs(self.cache_path, exist_ok=True)
            if self.cache_path not in Kept._handles:
                path = os.path.join(self.cache_path, ".corank.lock")
                Kept._handles[self.cache_path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            while time.monotonic() < until:
                try:
                    fcntl.lockf(Kept._handles[self.cache_path], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
                except (BlockingIOError, PermissionError):  # another process has it
                    time.sleep(0.02)
                else:
                    return

    def release(self) -> None:
        """Unlock this function once it is released as often as it was locked."""
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0 and fcntl is not None and self.cache_path in Kept._handles:
            with contextlib.suppress(OSError):
                fcntl.lockf(Kept._handles[self.cache_path], fcntl.LOCK_UN, 1, self._byte)

    @property
    def _byte(self) -> int:
        return zlib.crc32(self._impl.filename_base.encode())


def _kernel(function: Kernel, **options: Any) -> Kernel:
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    try:
        kernel._cache = Kept(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError) as why:  # neither the package's folder nor the user's can be written
        kernel._cache = Unkept(why)
    return cast(Kernel, kernel)


def jit(function: Kernel) -> Kernel:
    """Compile a kernel once, keep it on disk, and release the GIL while it runs."""
    return _kernel(function)


def relaxed(*flags: str) -> Callable[[Kernel], Kernel]:
    """
    Compile a kernel whose arithmetic LLVM may reorder, so that sums and maxima fill the lanes of a vector.

    *flags: LLVM's fast-math flags; with ``"nnan"`` no NaN may come in.
    """
    return lambda function: _kernel(function, fastmath=set(flags))


def inline(function: Kernel) -> Kernel:
    """Compile a small step that kernels share and that must cost nothing to call."""
    return _kernel(function, inline="always")


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
