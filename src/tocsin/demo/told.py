"""What the cluster told the demonstration's broker of: how many results it has for which backend subscription.

A notice is made from what an execution found, before any of it is stored or served, and names only what its broker
holds. So it says what the broker is owed, whoever else subscribes meanwhile. It may come twice, and counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Told:
    """Of one channel; ``is_whole`` until a notice came that had too much to list."""

    executions: set[str] = field(default_factory=set)  # by the position with which each ends
    owed: Counter[int] = field(default_factory=Counter)  # results by backend subscription
    is_whole: bool = True

    @property
    def notices(self) -> int:
        return len(self.executions)

    def add(self, notice: Mapping[str, Any]) -> None:
        """``KeyError``, ``TypeError`` or ``ValueError`` if it is not a notice."""
        through, listed = str(notice["through"]), notice["backends"]
        owed = None if listed is None else {int(backend): int(count) for backend, count in listed}
        if through in self.executions:
            return
        self.executions.add(through)
        self.is_whole &= owed is not None
        self.owed.update(owed or {})
