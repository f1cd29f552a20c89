"""A prefetch instruction for kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corank.core.jit import intrinsic

if TYPE_CHECKING:
    from llvmlite import ir
    from numba.core import types


@intrinsic
def prefetch(typingctx, array, position):  # type: ignore[no-untyped-def]
    """Prefetch the cache line of `array.flat[position]` (C-contiguous)."""
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
