"""Notices over real HTTP, from whoever holds the cluster's secret."""

import http.client

import httpx
import pytest

from tocsin.demo.receiver import MAX_BYTES, NoticeReceiver
from tocsin.tokens import mint

SECRET = b"s" * 32
NOTICES = {"notices": [{"channel": "ByKind", "count": 2}, {"channel": "NearMe"}, {"channel": "ByKind"}]}


def signed(secret=SECRET):
    return {"Authorization": f"Bearer {mint(secret, 'cluster', [], 3600)}"}


@pytest.fixture
def receiver():
    with NoticeReceiver(SECRET) as listening:
        yield listening


def test_notices_are_counted_by_channel(receiver):
    assert httpx.post(receiver.url, json=NOTICES, headers=signed()).status_code == 204
    assert receiver.notices == {"ByKind": 2, "NearMe": 1}


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
