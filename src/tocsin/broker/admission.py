"""Who may log in, as whom, and whether here.

* A token says who; it has to verify. A ticket says who and that the user belongs here; it is signed with the
  system's secret, by the coordinator or for a move by the broker that sends a session here, and checked without asking.
* A ticket is good for one login, and one of a move for its session alone. A login that did not get to its welcome has
  not used it. Where it does not count, the token beside it does.
* Without a ticket, a user that is held here is at home; of any other the coordinator is asked, and while it is
  away everybody with a token is let in.
* With a ticket alone a session holds what its user held, may ask for nothing new, and ends with the ticket
  unless it is refreshed with a token.
* A peer, a broker by its token, belongs everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_urlsafe

from tocsin.broker.ports import Directory, is_peer
from tocsin.broker.users import Users
from tocsin.clock import Clock
from tocsin.errors import BadArgument, TocsinError, Unauthenticated
from tocsin.protocol.names import check_name
from tocsin.protocol.tickets import Ticket, issue_ticket, read_ticket
from tocsin.tokens import LOCAL_ADMIN, Principal

Verify = Callable[[str], Principal]


class Moved(TocsinError):
    """The user belongs to another broker."""

    code = "moved"

    def __init__(self, user: str, broker: str, url: str) -> None:
        self.user, self.broker, self.url = user, broker, url
        super().__init__(user, broker)

    def __str__(self) -> str:
        return f"{self.user!r} belongs to the broker {self.broker!r}"


@dataclass(frozen=True, slots=True)
class Admitted:
    """``ends_at`` in seconds since the Unix epoch. ``was_asked`` is false where the coordinator was away."""

    principal: Principal
    version: int
    ends_at: float
    is_peer: bool = False
    ticket: Ticket | None = None
    has_token: bool = True
    was_asked: bool = True


class Admission:
    def __init__(
        self,
        broker: str,
        verify: Verify,
        secret: bytes | None,
        directory: Directory,
        users: Users,
        clock: Clock,
        *,
        insecure: bool = False,
        leeway_s: float = 0.0,
    ) -> None:
        self._broker, self._verify, self._secret = broker, verify, secret
        self._directory, self._users, self._clock = directory, users, clock
        self._insecure, self._leeway_s = insecure, leeway_s
        self._used: dict[str, float] = {}  # until when, by the ticket's number

    async def admit(self, token: str | None, ticket: str | None, session: str | None) -> Admitted:
        """Unauthenticated, or Moved, where it may not be. ``session`` is None where the client has no name for it."""
        principal = self.principal(token) if token is not None or (self._insecure and ticket is None) else None
        given = self._ticket(ticket, session, principal) if ticket is not None else None
        if principal is None:
            if given is None:
                raise Unauthenticated("a token or a ticket is needed to log in")
            known = Principal(given.user, ("admin",) if self._insecure else (), {"sub": given.user})
            if self._insecure:
                return Admitted(known, given.version, self.ends_at(known), ticket=given)
            return Admitted(known, given.version, given.ends_at, ticket=given, has_token=False)
        ends_at = self.ends_at(principal)
        if is_peer(principal):
            return Admitted(principal, 0, ends_at, is_peer=True)
        _check_user(principal.subject)
        if given is not None:
            return Admitted(principal, given.version, ends_at, ticket=given)
        version, was_asked = await self._version(principal.subject)
        return Admitted(principal, version, ends_at, was_asked=was_asked)

    def unused(self, admitted: Admitted) -> None:
        """Whoever was admitted was not welcomed: its ticket is as good as before."""
        if admitted.ticket is not None:
            self._used.pop(admitted.ticket.number, None)

    def ticket_for(self, session: str, ticket: str) -> str:
        """The same leave for one session alone; ``ticket`` as it is where this broker cannot sign such."""
        if self._secret is None:
            return ticket
        try:
            given = read_ticket(ticket, self._secret, leeway_s=self._leeway_s)
        except Unauthenticated:
            return ticket
        number = token_urlsafe(12)
        return issue_ticket(self._secret, given.user, given.broker, given.version, number, given.ends_at, session)

    def principal(self, token: str | None) -> Principal:
        """Whom a token names; the local administrator where tokens are off and none is given."""
        if token is not None:
            return self._verify(token)
        if self._insecure:
            return LOCAL_ADMIN
        raise Unauthenticated("a token is needed")

    def ends_at(self, principal: Principal) -> float:
        end = principal.claims.get("exp")
        return float(end) + self._leeway_s if isinstance(end, int | float) else float("inf")

    async def _version(self, user: str) -> tuple[int, bool]:
        held = self._users.get(user)
        if held is not None:
            return held.version, True
        placement = await self._directory.where(user)
        if placement is None:
            return 0, False
        if placement.broker != self._broker:
            raise Moved(user, placement.broker, placement.url)
        return placement.version, True

    def _ticket(self, text: str, session: str | None, principal: Principal | None) -> Ticket | None:
        """The ticket, if it counts. One that does not is an error only where there is no token beside it."""
        try:
            return self._usable(text, session, principal)
        except Unauthenticated:
            if principal is None:
                raise
            return None

    def _usable(self, text: str, session: str | None, principal: Principal | None) -> Ticket:
        if self._secret is None:
            raise Unauthenticated("this broker takes no tickets")
        ticket = read_ticket(text, self._secret, leeway_s=self._leeway_s)
        held = self._users.get(ticket.user)
        if ticket.broker != self._broker:
            raise Unauthenticated(f"the ticket is for the broker {ticket.broker!r:.80}")
        if principal is not None and principal.subject != ticket.user:
            raise Unauthenticated("token and ticket are of different users")
        if held is not None and held.version > ticket.version:
            raise Unauthenticated("the ticket is older than the user's assignment")
        if session is not None and ticket.session not in (None, session):
            raise Unauthenticated("the ticket is another session's")
        self._use(ticket)
        return ticket

    def _use(self, ticket: Ticket) -> None:
        now = self._clock.now()
        if len(self._used) > 1000 and next(iter(self._used.values())) < now:
            self._used = {used: end for used, end in self._used.items() if end >= now}
        if ticket.number in self._used:
            raise Unauthenticated("the ticket was used before")
        self._used[ticket.number] = ticket.ends_at + self._leeway_s


def _check_user(name: str) -> None:
    """Whom the coordinator could not keep is let in nowhere, whether it is away or not."""
    try:
        check_name("user", name)
    except BadArgument as problem:
        raise Unauthenticated(f"the token's subject cannot be a user: {problem}") from None
