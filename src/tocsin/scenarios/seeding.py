"""Independent streams of chance from one seed.

Each part of a scenario draws from its own named stream, so that asking one part for more does not
change what another part does.
"""

from __future__ import annotations

import zlib

import numpy as np

from tocsin.errors import BadArgument


def stream(seed: int, name: str) -> np.random.Generator:
    """The generator of the stream ``name`` of ``seed``."""
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise BadArgument("seed", "an integer from 0 on", seed)
    return np.random.default_rng([seed, zlib.crc32(name.encode())])
