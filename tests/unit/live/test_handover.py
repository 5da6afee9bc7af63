from __future__ import annotations

from tocsin.live.handover import HEAD, MASK, OPENING, Handover, Watch
from tocsin.protocol import messages
from tocsin.protocol.codec import encoded
from tocsin.protocol.messages import Wanted
from tocsin.protocol.targets import TopicTarget

WANTED = [Wanted("n", TopicTarget("news"), "0001")]
MOVE = encoded(messages.Move("b2", "http://127.0.0.1:2", "a-ticket"))
OLD = encoded(messages.Done(7))
NEWS = b'{"type":"notification","stream":"topic:news","after":"1","through":"2","payload":1}'


def _login(ticket: str | None) -> bytes:
    return encoded(messages.Login(1, "token", ticket, "session", WANTED))


def _watch() -> tuple[Watch, list[Handover]]:
    done: list[Handover] = []
    return Watch("ann", lambda: WANTED, done), done


def test_a_move_costs_what_is_said_until_its_confirmation_is_answered() -> None:
    watch, done = _watch()
    login, confirm = _login("a-ticket"), encoded(messages.Confirm(2))
    welcome, answer = encoded(messages.Welcome(1, "ann", "b2", "session", 10.0, [])), encoded(messages.Done(2))
    watch(1, False, MOVE)
    for link, is_ours, data in [
        (2, True, login),
        (1, False, OLD),
        (2, False, welcome),
        (2, False, NEWS),
        (2, True, confirm),
    ]:
        watch(link, is_ours, data)
    assert done == []
    watch(2, False, answer)
    watch(2, False, answer)
    said = sum(len(data) + HEAD for data in (MOVE, login, welcome, confirm, answer)) + 2 * MASK + OPENING
    assert [(one.user, one.bytes, one.subscriptions) for one in done] == [("ann", said, 1)]
    assert done[0].behind_bytes > 200
    assert watch.logins == 0


def test_a_login_without_the_tickets_of_the_move_is_none_of_it() -> None:
    watch, done = _watch()
    watch(1, True, _login(None))
    watch(1, False, MOVE)
    watch(2, True, _login("another"))
    watch(2, False, encoded(messages.Done(2)))
    assert (done, watch.logins) == ([], 2)
