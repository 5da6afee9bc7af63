"""When a program that ended may be started again."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Pauses double from ``least_s`` to ``most_s``; a life of ``good_s`` makes the next pause short again."""

    least_s: float = 1.0
    most_s: float = 30.0
    good_s: float = 60.0
    _failures: dict[str, int] = field(default_factory=dict)

    def pause_s(self, name: str, lived_s: float) -> float:
        """How long to wait, now that ``name`` has ended after so long a life."""
        failures = 0 if lived_s >= self.good_s else self._failures.get(name, 0)
        self._failures[name] = failures + 1
        return float(min(self.most_s, self.least_s * 2**failures))
