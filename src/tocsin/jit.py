"""How kernels are compiled: ahead of use, one signature each, without the GIL, cached on disk.

Every kernel states its signature, so importing it compiles it (or loads it from the cache) and no
call can trigger another compilation. Inputs are typed read-only: memory-mapped and Arrow memory is,
and numba passes writable arrays where read-only ones are declared.

The cache lies where numba puts it: in ``NUMBA_CACHE_DIR`` when set, else beside the source file,
else under the user's cache directory. Where none of them can be written the kernel is compiled
anew by each process, which costs seconds but never fails. Numba notices only changes of a kernel's
own file, so a helper lives in the file of the kernels that call it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types

F = TypeVar("F", bound=Callable[..., Any])

_njit: Callable[..., Callable[[Any], Callable[..., Any]]] = numba.njit

i32, i64, u8, u32, u64, f64, boolean = (
    types.int32,
    types.int64,
    types.uint8,
    types.uint32,
    types.uint64,
    types.float64,
    types.boolean,
)


def ro(dtype: Any) -> Any:
    """A contiguous array that the kernel only reads."""
    return types.Array(dtype, 1, "C", readonly=True)


def rw(dtype: Any) -> Any:
    """A contiguous array that the kernel writes."""
    return types.Array(dtype, 1, "C")


def kernel(*signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for exactly these argument types."""

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return _njit(signature, cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError as problem:
            if "cannot cache" not in str(problem):
                raise
            return _njit(signature, nogil=True, error_model="numpy")(function)

    return compile_now


def helper(function: F) -> F:
    """A function that kernels of the same file call; it is compiled into them."""
    return cast("F", _njit(nogil=True, error_model="numpy")(function))
