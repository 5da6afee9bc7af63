"""How kernels are compiled: ahead of use, one signature each, without the GIL, cached on disk.

Every kernel states its signature, so importing it compiles it (or loads it from the cache) and no
call can trigger another compilation. Inputs are typed read-only: memory-mapped and Arrow memory is,
and numba passes writable arrays where read-only ones are declared.

The cache lies where numba puts it: in ``NUMBA_CACHE_DIR`` when set, else beside the source file,
else under the user's cache directory. Where none of them can be written the kernel is compiled
anew by each process, which costs seconds but never fails.

Numba notices only changes of a kernel's own file. ``Cache`` makes it notice those of every file of
the package that has kernels or helpers, so a helper may be in another file than the kernels that
call it, of the same package.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile

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


class Cache(FunctionCache):
    """Where a kernel is kept from process to process; good as long as no kernel or helper of its package changes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = digest(Path(inspect.getfile(function)).parent)
        file = (self.cache_path, self._impl.filename_base, stamp)
        self._cache_file = IndexDataCacheFile(*file)  # type: ignore[no-untyped-call]


@cache
def digest(package: Path) -> bytes:
    """Of the files in this directory that use this module."""
    found = hashlib.sha256()
    for path in sorted(package.glob("*.py")):
        text = path.read_bytes()
        if __name__.encode() in text:
            found.update(b"%s %d " % (path.name.encode(), len(text)) + text)
    return found.digest()


def kernel(*signature: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile for exactly these argument types."""

    def compile_now(function: Callable[..., Any]) -> Callable[..., Any]:
        made: Any = _njit(nogil=True, error_model="numpy")(function)
        if made is not function:  # as it is where NUMBA_DISABLE_JIT is set
            made._cache = _cache(function) or made._cache
            made.compile(signature)
            made.disable_compile()
        return cast("Callable[..., Any]", made)

    return compile_now


def _cache(function: Callable[..., Any]) -> Cache | None:
    try:
        return Cache(function)
    except RuntimeError as problem:
        if "cannot cache" not in str(problem):
            raise
        return None


def helper(function: F) -> F:
    """A function that kernels of the same package call; it is compiled into them."""
    return cast("F", _njit(nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """A helper so small that calling it would cost more than what it does."""
    return cast("F", _njit(nogil=True, error_model="numpy", forceinline=True)(function))
