"""Notices over real HTTP, from whoever holds the cluster's secret."""

import http.client

import httpx
import pytest

from tocsin.demo.receiver import MAX_BYTES, NoticeReceiver
from tocsin.tokens import mint

SECRET = b"s" * 32


def notice(channel, execution, *backends):
    return {"channel": channel, "through": f"{execution:012d}-ffffffff", "backends": [list(one) for one in backends]}


NOTICES = {"notices": [notice("ByKind", 1, (4, 2), (5, 1)), notice("NearMe", 1, (9, 1)), notice("ByKind", 2, (4, 1))]}


def signed(secret=SECRET):
    return {"Authorization": f"Bearer {mint(secret, 'cluster', [], 3600)}"}


@pytest.fixture
def receiver():
    with NoticeReceiver(SECRET) as listening:
        yield listening


def test_notices_are_counted_by_channel_and_what_they_list_by_subscription(receiver):
    assert httpx.post(receiver.url, json=NOTICES, headers=signed()).status_code == 204
    assert receiver.notices == 3
    assert receiver.told_of("ByKind").owed == {4: 3, 5: 1}
    assert receiver.told_of("NearMe").owed == {9: 1}


def test_a_notice_that_comes_again_counts_once(receiver):
    for _ in range(2):
        httpx.post(receiver.url, json=NOTICES, headers=signed())
    assert (receiver.notices, receiver.told_of("ByKind").owed) == (3, {4: 3, 5: 1})


def test_after_counting_notices_are_taken_and_not_remembered(receiver):
    httpx.post(receiver.url, json=NOTICES, headers=signed())
    receiver.end_counting()
    assert httpx.post(receiver.url, json=NOTICES, headers=signed()).status_code == 204
    assert receiver.notices == 0


def test_a_notice_with_too_much_to_list_makes_the_channel_not_whole(receiver):
    httpx.post(receiver.url, json={"notices": [notice("ByKind", 1) | {"backends": None}]}, headers=signed())
    assert not receiver.told_of("ByKind").is_whole
    assert receiver.told_of("NearMe").is_whole


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({}, b"{}", 401),
        (signed(b"t" * 32), b"{}", 401),
        (signed(), b"not json", 400),
        (signed(), b'{"notices": [{}]}', 400),
        (signed(), b"[]", 400),
    ],
    ids=["no token", "another's token", "not JSON", "no channel", "not an object"],
)
def test_anything_else_is_refused_and_not_counted(receiver, headers, content, status):
    assert httpx.post(receiver.url, content=content, headers=headers).status_code == status
    assert not receiver.notices


def test_a_body_over_the_limit_is_refused_before_it_is_read(receiver):
    connection = http.client.HTTPConnection(receiver.url.split("/")[2], timeout=10)
    connection.putrequest("POST", "/notify")
    connection.putheader("Content-Length", str(MAX_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_other_paths_are_not_there(receiver):
    assert httpx.post(receiver.url + "s", json=NOTICES, headers=signed()).status_code == 404
