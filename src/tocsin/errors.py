"""Every error that a user of Tocsin can meet.

::

    TocsinError
    ├── ConfigError              a setting is unknown or has a bad value
    ├── StatementError           a statement is wrong; carries line and column
    │   ├── SyntaxProblem        it does not parse
    │   └── InvalidQuery         it parses, but the query is not allowed or not possible
    ├── NotFound                 a named thing does not exist
    ├── AlreadyExists            a named thing exists already
    │   └── NameTaken            its name would hide another thing's
    ├── KeyReused                an idempotency key came again with other content
    ├── InUse                    dropping it would break others; carries their names
    ├── BadArgument              a parameter value does not fit its declared type
    ├── BadRecords               a batch was refused as a whole
    ├── Refused                  the token lacks the capability
    ├── Unauthenticated          no token, or one that does not verify
    ├── LimitExceeded            a request is over a stated limit (413 or 429 over HTTP)
    ├── StorageFull              the disk is full; nothing was acknowledged
    ├── ExecutionFailed          a channel's Spark job failed; carries channel and SQL
    │   ├── ExecutionStopped     it was told to stop, which is no fault of the channel
    │   └── ExecutionTooLong     it was cancelled at a limit of time
    ├── Corrupt                  stored data does not verify
    ├── BrokerRefused            a broker refused a request; carries its code
    ├── SessionEnded             a broker ended the session for good; carries the number
    └── Unavailable              a part that is needed is not there (Java, Spark, a lock)
        └── Uncertain            no answer came to what was sent: it may have been done or not

Each holds fields and composes its sentence: what was expected, what came, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` for the closest known word in any case, as it is known, or an empty string."""
    folded = {one.casefold(): one for one in known}
    close = get_close_matches(word.casefold(), list(folded), n=1, cutoff=0.6)
    return f"; did you mean {folded[close[0]]!r}?" if close else ""


_NOTHING = object()


class TocsinError(Exception):
    """Base of all; ``code`` is the stable name that API and metrics use."""

    code = "error"


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a statement's text; line and column count from 1."""

    line: int
    column: int


class ConfigError(TocsinError):
    code = "config"

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__(*problems)

    def __str__(self) -> str:
        return "\n".join(self.problems)


class StatementError(TocsinError):
    code = "statement"

    def __init__(
        self, problem: str, span: Span | None = None, *, expected: str | None = None, suggestion: str = ""
    ) -> None:
        self.problem, self.span, self.expected, self.suggestion = problem, span, expected, suggestion
        super().__init__(problem, span, expected)

    def __str__(self) -> str:
        where = f"line {self.span.line}, column {self.span.column}: " if self.span else ""
        hint = f"; expected {self.expected}" if self.expected else ""
        return f"{where}{self.problem}{hint}{self.suggestion}"


class SyntaxProblem(StatementError):
    code = "syntax"


class InvalidQuery(StatementError):
    code = "invalid-query"


class NotFound(TocsinError):
    code = "not-found"

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        super().__init__(kind, name)

    def __str__(self) -> str:
        return f"there is no {self.kind} {self.name!r}{nearest(self.name, self.known)}"


class AlreadyExists(TocsinError):
    code = "already-exists"

    def __init__(self, kind: str, name: str, advice: str = "drop it first or say IF NOT EXISTS") -> None:
        self.kind, self.name, self.advice = kind, name, advice
        super().__init__(kind, name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} exists already; {self.advice}"


class KeyReused(TocsinError):
    code = "key-reused"

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(key)

    def __str__(self) -> str:
        return f"the idempotency key {self.key!r} was used before with other content; nothing was appended"


class NameTaken(AlreadyExists):
    """A name that would hide another thing, or be hidden by it."""

    def __init__(self, kind: str, name: str, by: str) -> None:
        super().__init__(kind, name)
        self.by = by

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} would share a name with {self.by}; choose another name or drop that first"


class InUse(TocsinError):
    code = "in-use"

    def __init__(self, kind: str, name: str, users: Sequence[str], *, instead: str = "") -> None:
        self.kind, self.name, self.users, self.instead = kind, name, tuple(users), instead
        super().__init__(kind, name)

    def __str__(self) -> str:
        shown = ", ".join(self.users[:10]) + (f" and {len(self.users) - 10} more" if len(self.users) > 10 else "")
        return f"{self.kind} {self.name!r} is in use by {shown}; drop those first{self.instead}"


class BadArgument(TocsinError):
    """``got`` is the value, left out where there was none; ``because`` says what is wrong with it."""

    code = "bad-argument"

    def __init__(self, name: str, expected: str, got: object = _NOTHING, *, because: str = "") -> None:
        self.name, self.expected, self.got, self.because = name, expected, got, because
        super().__init__(name, expected)

    def __str__(self) -> str:
        came = "" if self.got is _NOTHING else f", got {self.got!r:.120}"
        return f"{self.name}: expected {self.expected}{came}{self.because and f' ({self.because})'}"


class BadRecords(TocsinError):
    code = "bad-records"


class Refused(TocsinError):
    code = "forbidden"


class Unauthenticated(TocsinError):
    code = "unauthenticated"


class LimitExceeded(TocsinError):
    code = "limit-exceeded"

    def __init__(
        self, what: str, limit: int | float, got: int | float | None = None, *, retry_after_s: float | None = None
    ) -> None:
        self.what, self.limit, self.got, self.retry_after_s = what, limit, got, retry_after_s
        super().__init__(what, limit, got)

    def __str__(self) -> str:
        came = f", got {self.got:,}" if self.got is not None else ""
        return f"{self.what}: at most {self.limit:,}{came}"


class StorageFull(TocsinError):
    code = "storage-full"


class ExecutionFailed(TocsinError):
    code = "execution-failed"

    def __init__(self, channel: str, problem: str, sql: str) -> None:
        self.channel, self.problem, self.sql = channel, problem, sql
        super().__init__(channel, problem, sql)

    def __str__(self) -> str:
        return f"channel {self.channel!r}: {self.problem}\nSQL: {self.sql}"


class ExecutionStopped(ExecutionFailed):
    """Its channel was paused, replaced or dropped, or the cluster stops."""


class ExecutionTooLong(ExecutionFailed):
    """It took too long, by itself or for those who waited."""


class Corrupt(TocsinError):
    code = "corrupt"


class Unavailable(TocsinError):
    code = "unavailable"


class Uncertain(Unavailable):
    """``detail`` is a broker's own sentence, where it was the broker that got no answer."""

    code = "uncertain"

    def __init__(self, what: str, detail: str = "") -> None:
        self.what, self.detail = what, detail
        super().__init__(what, detail)

    def __str__(self) -> str:
        return self.detail or f"{self.what}: the connection broke before the answer; it may have been done or not"


class BrokerRefused(TocsinError):
    """``code`` is the broker's name for the reason."""

    def __init__(self, code: str, detail: str, *, retry_after_s: float | None = None) -> None:
        self.code, self.detail, self.retry_after_s = code, detail, retry_after_s
        super().__init__(code, detail)

    def __str__(self) -> str:
        later = "" if self.retry_after_s is None else f"; try again in {self.retry_after_s:g} s"
        return f"{self.detail} ({self.code}){later}"


class SessionEnded(TocsinError):
    """``number`` is the close code; see the protocol's table for what it means."""

    code = "session-ended"

    def __init__(self, number: int, detail: str) -> None:
        self.number, self.detail = number, detail
        super().__init__(number, detail)

    def __str__(self) -> str:
        return f"the session has ended: {self.detail} ({self.number})"
