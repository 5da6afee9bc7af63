"""What people with connections remember, and until when."""

import asyncio

from tocsin.client import Notification
from tocsin.demo.crowd import Crowd
from tocsin.demo.heard import Heard


class Told:
    def __init__(self, *reports):
        self.reports = reports

    async def __aiter__(self):
        for number, report in enumerate(self.reports, 1):
            after, through = f"{number - 1:012d}-ffffffff", f"{number:012d}-ffffffff"
            yield Notification("s", "ByKind/1", after, through, b'{"report_id": "%s"}' % report.encode())


def follow(crowd, *reports):
    heard = Heard("u1", "ByKind", 1, "000000000000-ffffffff")
    asyncio.run(crowd._follow(Told(*reports), heard))
    return heard


def test_what_comes_is_remembered_until_counting_ends():
    crowd = Crowd("", lambda user: "", lambda user: True)
    assert follow(crowd, "r1", "r2").reports == ["r1", "r2"]
    assert crowd.notifications == 2
    crowd.end_counting()
    assert follow(crowd, "r3").reports == []
    assert (crowd.notifications, crowd.heard) == (0, [])
