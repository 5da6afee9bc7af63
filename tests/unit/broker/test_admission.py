import asyncio
import time

import pytest

from broker_world import SECRET, MemoryDirectory, token_of
from tocsin.broker.admission import Admission, Moved
from tocsin.broker.users import Users
from tocsin.clock import VirtualClock
from tocsin.errors import Unauthenticated
from tocsin.protocol.coordination import Placement
from tocsin.protocol.tickets import issue_ticket
from tocsin.tokens import verify


class Door:
    def __init__(self, **options):
        self.users, self.directory, self.clock = Users(), MemoryDirectory("b1"), VirtualClock(time.time())
        self.admission = Admission(
            "b1", lambda token: verify(token, SECRET), SECRET, self.directory, self.users, self.clock, **options
        )

    def admit(self, token=None, ticket=None, session="s"):
        return asyncio.run(self.admission.admit(token, ticket, session))


def ticket(user="ann", broker="b1", version=3, number="n", ttl_s=60.0, session=None):
    return issue_ticket(SECRET, user, broker, version, number, time.time() + ttl_s, session)


def elsewhere(door, user="ann"):
    door.directory.placed[user] = Placement(user, "b2", "http://b2", 9, "", "")


def test_a_ticket_lets_in_without_asking():
    door = Door()
    elsewhere(door)
    admitted = door.admit(token_of("ann"), ticket())
    assert (admitted.version, admitted.ticket is not None, admitted.has_token) == (3, True, True)
    alone = door.admit(None, ticket(number="n2"))
    assert (alone.principal.subject, alone.principal.capabilities, alone.has_token) == ("ann", (), False)
    assert alone.ends_at == pytest.approx(time.time() + 60, abs=2)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(ticket(broker="b2"), id="for another broker"),
        pytest.param(ticket(user="bob"), id="of another user"),
        pytest.param(ticket(ttl_s=-5), id="too old"),
        pytest.param(ticket(version=1), id="of an older assignment"),
        pytest.param("nonsense", id="no ticket at all"),
    ],
)
def test_a_ticket_that_does_not_count_leaves_the_token_to_count(bad):
    door = Door()
    door.users.enter("ann", 2)
    admitted = door.admit(token_of("ann"), bad)
    assert (admitted.ticket, admitted.version) == (None, 2)


def test_a_ticket_alone_has_to_count():
    door = Door()
    with pytest.raises(Unauthenticated, match="for the broker"):
        door.admit(None, ticket(broker="b2"))
    door.admit(None, ticket())


@pytest.mark.parametrize("session", ["s", "another of the user's", None])
def test_a_ticket_lets_in_once_whatever_the_second_calls_itself(session):
    door, shown = Door(), ticket()
    door.admit(None, shown)
    with pytest.raises(Unauthenticated, match="used before"):
        door.admit(None, shown, session)
    assert door.admit(token_of("ann"), shown, session).ticket is None, "the token decides"


def test_a_ticket_of_a_move_is_for_its_session_alone():
    door = Door()
    phone, page = (door.admission.ticket_for(session, ticket()) for session in ("phone", "page"))
    with pytest.raises(Unauthenticated, match="another session's"):
        door.admit(None, phone, "thief")
    assert door.admit(token_of("ann"), phone, "tablet").ticket is None, "the token decides"
    assert door.admit(None, phone, "phone").version == 3
    assert door.admit(None, page, None).ticket.session == "page", "who has no name gets the ticket's"
    for used, session in ((phone, "phone"), (page, "page")):
        with pytest.raises(Unauthenticated, match="used before"):
            door.admit(None, used, session)


def test_whoever_was_not_welcomed_may_come_again_with_its_ticket():
    door, shown = Door(), ticket(session="phone")
    door.admission.unused(door.admit(None, shown, "phone"))
    door.admit(None, shown, "phone")


def test_what_is_no_ticket_is_handed_on_as_it_is():
    assert Door().admission.ticket_for("phone", "nonsense") == "nonsense"


def test_who_is_held_here_is_at_home_whatever_the_coordinator_would_say():
    door = Door()
    elsewhere(door)
    with pytest.raises(Moved):
        door.admit(token_of("ann"))
    door.users.enter("ann", 4)
    assert door.admit(token_of("ann")).version == 4


def test_a_peer_belongs_everywhere_and_an_administrator_is_none():
    door = Door()
    elsewhere(door, "b2")
    assert door.admit(token_of("b2", ["broker:b2"])).is_peer
    with pytest.raises(Moved):
        door.admit(token_of("b2", ["admin"]))


def test_without_tokens_everyone_is_the_local_administrator_only_where_configured():
    with pytest.raises(Unauthenticated):
        Door().admit()
    assert Door(insecure=True).admit().principal.may("admin")
    with pytest.raises(Unauthenticated):
        Door(insecure=True).admit("nonsense")


@pytest.mark.parametrize("name", ["..", "a\nb", "x" * 256])
def test_whom_the_coordinator_could_not_keep_is_not_let_in(name):
    door = Door()
    door.directory.is_away = True
    with pytest.raises(Unauthenticated, match="cannot be a user"):
        door.admit(token_of(name))


def test_where_tokens_are_off_a_ticket_alone_is_as_good_as_none():
    """A client without a token comes by the coordinator, too, which gives it a ticket."""
    admitted = Door(insecure=True).admit(None, ticket())
    assert (admitted.principal.subject, admitted.principal.may("admin"), admitted.has_token) == ("ann", True, True)
    assert (admitted.version, admitted.ends_at) == (3, float("inf"))
