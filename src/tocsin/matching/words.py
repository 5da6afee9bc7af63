"""The words of a text: lower case, maximal runs of Unicode letters and digits.

The SQL form is ``split(lower(text), '[^\\\\p{L}\\\\p{N}]+')`` without the empty strings. The two agree
wherever Python's and the JVM's Unicode tables do: a letter, digit or case mapping assigned in a
version of Unicode that only one of them knows is a word character, or lower-cased, only there.
Both apply the full mappings (``İ`` becomes ``i`` and a combining dot, which then ends the word) and
the final form of sigma. Combining marks are not letters, so a text that is to be matched should be in
composed form (NFC).

ASCII texts, the bulk of most, are cut by a kernel; the others one by one in Python.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.jit import boolean, helper, i64, kernel, ro, u8
from tocsin.matching.columns import valid
from tocsin.matching.fingerprint import Seed, string_buffers
from tocsin.matching.siphash import Lanes, empty_lanes, hash_strings

_WORD = re.compile(r"[^\W_]+")

Bools = NDArray[np.bool_]
I32s = NDArray[np.int32]
I64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def words(text: str) -> list[str]:
    """The words in order, repetitions kept."""
    return _WORD.findall(text.lower())


def word_lanes(column: pa.Array, seed: Seed, where: str) -> tuple[I32s, Lanes]:
    """(row, fingerprint) of the words of each text, each once a row, by row, then as they first appear."""
    row, _, lanes = _tokens(column, seed, where)
    order = np.lexsort((lanes[1], lanes[0], row))
    keys = np.stack([row[order].astype(np.uint64), lanes[0][order], lanes[1][order]])
    is_new = np.ones(row.size, np.bool_)
    is_new[1:] = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    first = np.sort(order[is_new])  # lexsort is stable: the first of equals is the one that appeared first
    return row[first], (lanes[0][first], lanes[1][first])


def param_lanes(column: pa.Array, seed: Seed, where: str) -> tuple[Bools, Lanes]:
    """(which parameters are exactly one word, their fingerprints)."""
    row, length, tokens = _tokens(column, seed, where)
    counts = np.bincount(row, minlength=len(column))
    alone = (counts[row] == 1) & (length == _lowered_lengths(column, where)[row])
    is_word, lanes = (
        np.zeros(len(column), np.bool_),
        (np.zeros(len(column), np.uint64), np.zeros(len(column), np.uint64)),
    )
    is_word[row[alone]] = True
    for out, part in zip(lanes, tokens, strict=True):
        out[row[alone]] = part[alone]
    return is_word, lanes


def _tokens(column: pa.Array, seed: Seed, where: str) -> tuple[I32s, I64s, Lanes]:
    """(row, length in bytes, fingerprint) of every word, by row, then in order."""
    data, offsets = string_buffers(column, where)
    is_plain = _plain(data, offsets)
    is_read = is_plain & valid(column)
    row, bounds, text = _cut_ascii(data, offsets, is_read)
    lanes = _hashed(text, bounds, seed)
    others = [(i, w.encode()) for i in np.flatnonzero(~is_plain) for w in words(column[int(i)].as_py() or "")]
    if not others:
        return row, np.diff(bounds), lanes
    more = np.array([i for i, _ in others], np.int32)
    more_bounds = np.cumsum([0, *(len(w) for _, w in others)], dtype=np.int64)
    more_lanes = _hashed(np.frombuffer(b"".join(w for _, w in others), np.uint8), more_bounds, seed)
    order = np.argsort(np.concatenate([row, more]), kind="stable")
    length = np.concatenate([np.diff(bounds), np.diff(more_bounds)])[order]
    joined = tuple(np.concatenate(pair)[order] for pair in zip(lanes, more_lanes, strict=True))
    return np.concatenate([row, more])[order], length, (joined[0], joined[1])


def _lowered_lengths(column: pa.Array, where: str) -> I64s:
    data, offsets = string_buffers(column, where)
    length = np.diff(offsets)
    for i in np.flatnonzero(~_plain(data, offsets)):
        length[i] = len((column[int(i)].as_py() or "").lower().encode())
    return length


def _hashed(text: Bytes, bounds: I64s, seed: Seed) -> Lanes:
    out = empty_lanes(bounds.size - 1)
    hash_strings(text, bounds, np.uint64(seed[0]), np.uint64(seed[1]), *out)
    return out


@helper
def _lower(byte: np.uint8) -> np.uint8:
    """The lower-case letter or the digit, or 0 for any other byte."""
    if 65 <= byte <= 90:
        return np.uint8(byte + 32)
    return byte if 97 <= byte <= 122 or 48 <= byte <= 57 else np.uint8(0)


@kernel(ro(u8), ro(i64))
def _plain(data: Bytes, offsets: I64s) -> Bools:
    """Which strings are ASCII."""
    out = np.ones(offsets.size - 1, np.bool_)
    for i in range(out.size):
        for at in range(offsets[i], offsets[i + 1]):
            if data[at] >= 128:
                out[i] = False
                break
    return out


@kernel(ro(u8), ro(i64), ro(boolean))
def _cut_ascii(data: Bytes, offsets: I64s, is_read: Bools) -> tuple[I32s, I64s, Bytes]:
    """(row of each word, bounds of the words, their bytes one after the other)."""
    most = (offsets[-1] - offsets[0]) // 2 + offsets.size
    row, bounds = np.empty(most, np.int32), np.zeros(most + 1, np.int64)
    text = np.empty(offsets[-1] - offsets[0], np.uint8)
    n, filled = 0, 0
    for i in range(is_read.size):
        if not is_read[i]:
            continue
        for at in range(offsets[i], offsets[i + 1] + 1):
            byte = _lower(data[at]) if at < offsets[i + 1] else np.uint8(0)
            if byte != 0:
                text[filled] = byte
                filled += 1
            elif filled > bounds[n]:
                row[n], bounds[n + 1] = i, filled
                n += 1
    return row[:n], bounds[: n + 1], text[:filled]
