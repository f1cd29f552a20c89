"""Compile kernels with numba, and cache them on disk; imported when the first kernel is compiled."""

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
import numba.extending
from llvmlite import ir
from numba.core import event, types
from numba.core.caching import FunctionCache, NullCache

try:
    import fcntl
except ImportError:  # on Windows every process compiles for itself
    fcntl = None  # type: ignore[assignment]

KernelFunction = Callable[..., Any]


class CompileNotice(event.Listener):
    """Prints one line when kernels are compiled, if stderr is a terminal."""

    def __init__(self) -> None:
        self.is_printed = False

    def on_start(self, compiling: event.Event) -> None:
        """Print the notice before the first kernel is compiled."""
        kernel = compiling.data["dispatcher"].py_func.__module__
        if self.is_printed or not kernel.startswith("corank.") or sys.stderr is None or not sys.stderr.isatty():
            return
        self.is_printed = True
        sys.stderr.write("corank: compiling for this machine, which takes some seconds, once...\n")
        sys.stderr.flush()

    def on_end(self, compiling: event.Event) -> None:
        """Release the lock of a kernel that could not be compiled."""
        details = getattr(compiling, "_exc_details", None)  # `is_failed` is always true (numba 0.68)
        if details and details[0] and isinstance(cache := compiling.data["dispatcher"]._cache, LockedCache):
            cache.release()


NOTICE = CompileNotice()
event.register("numba:compile", NOTICE)  # type: ignore[no-untyped-call]


class NoCache(NullCache):
    """
    A cache that stores nothing, and warns once per process.

    why: the reason for the warning.
    """

    has_warned = False

    def __init__(self, why: Exception) -> None:
        self.why = why

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Warn that the kernel will be compiled again in every process."""
        if not NoCache.has_warned:
            NoCache.has_warned = True
            warnings.warn(
                f"compiled code cannot be cached ({self.why}), so that every process compiles it again in some "
                "seconds; set the environment variable NUMBA_CACHE_DIR to a writable folder.",
                RuntimeWarning,
                stacklevel=2,
            )


class LockedCache(FunctionCache):
    """
    Numba's cache on disk with a lock; damaged files or files that cannot be written are not fatal.

    If several processes need the same kernel, one compiles it, and the others wait and load the result. Without a
    lock every process compiles, and two that save different signatures at the same time can corrupt the index.
    """

    _handles: ClassVar[dict[str, int]] = {}
    """The open lock file of each folder; closing it would release all its locks."""
    _patience = 300.0
    """Seconds to wait for another process before compiling without the lock."""
    _depth = 0

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel, or None if this process must compile it and holds the lock until it is saved."""
        result = self._load(signature, target_context)
        if result is None:
            self._acquire()
            result = self._load(signature, target_context)  # another process may have saved it meanwhile
            if result is not None:
                self.release()
        return result

    def _load(self, signature: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(signature, target_context)  # type: ignore[no-untyped-call]
        except Exception:
            # unpickling a damaged file can raise anything; an empty index replaces the damaged one
            with contextlib.suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Save the kernel if possible."""
        try:
            super().save_overload(signature, compiled)  # type: ignore[no-untyped-call]
        except Exception as why:
            NoCache(why).save_overload(signature, compiled)
        finally:
            self.release()

    def _acquire(self) -> None:
        """Lock this function unless this process already holds the lock."""
        if self._depth == 0 and fcntl is not None:
            self._wait()
        self._depth += 1

    def _wait(self) -> None:
        """Lock one byte of the folder's lock file; continue without a lock if that is impossible."""
        until = time.monotonic() + self._patience
        with contextlib.suppress(OSError):
            os.makedirs(self.cache_path, exist_ok=True)
            if self.cache_path not in LockedCache._handles:
                path = os.path.join(self.cache_path, ".corank.lock")
                LockedCache._handles[self.cache_path] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            while time.monotonic() < until:
                try:
                    fcntl.lockf(LockedCache._handles[self.cache_path], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, self._byte)
                except (BlockingIOError, PermissionError):  # another process has it
                    time.sleep(0.02)
                else:
                    return

    def release(self) -> None:
        """Unlock this function when it was released as often as it was locked."""
        self._depth = max(self._depth - 1, 0)
        if self._depth == 0 and fcntl is not None and self.cache_path in LockedCache._handles:
            with contextlib.suppress(OSError):
                fcntl.lockf(LockedCache._handles[self.cache_path], fcntl.LOCK_UN, 1, self._byte)

    @property
    def _byte(self) -> int:
        return zlib.crc32(self._impl.filename_base.encode())


def compile_kernel(function: KernelFunction, options: dict[str, Any] | None) -> KernelFunction:
    """Return a compiled kernel that is cached on disk and releases the GIL."""
    if options is None:
        function.__globals__.update(ir=ir, types=types)
        return cast(KernelFunction, numba.extending.intrinsic(function))
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    try:
        kernel._cache = LockedCache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError) as why:  # no cache folder is writable
        kernel._cache = NoCache(why)
    return cast(KernelFunction, kernel)
