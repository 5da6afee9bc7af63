"""How kernels that move one subscriber at a time end, and what they tell of their steps.

What ends them: every move makes the target end below the level where the source stood, by more than rounding, so the
sorted vector of levels falls lexicographically (LDM, SDM), or lowers the sum of the levels' powers by a stated least
(XBAL). As many steps as ``steps`` has room for stop what rounding might still keep alive.
"""

from __future__ import annotations

from tocsin.jit import i64, rw

REACHED, STUCK, TOO_MANY = 0, 1, 2
TO_LIGHTEST, TO_SIMILAR, BEST_FIT, SWAPPED = 0, 1, 2, 3  # why a step was made
OVER, EMPTY, POOR, SHUT = 0, 1, 2, 3  # why a candidate was refused

TOLD = (rw(i64), rw(i64), rw(i64))  # steps, why, refused
