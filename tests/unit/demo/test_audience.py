"""How many people a row reaches: those who subscribed before it, however many share it."""

from tocsin.demo.audience import Audience
from tocsin.scenarios.city import Intent


class Desk:
    """Gives the backend that its kind has, and the position at which it stands."""

    def __init__(self):
        self.position = "1"

    def post(self, path, body):
        kinds = [one["arguments"]["kind"] for one in body["subscriptions"]]
        return {"subscriptions": [{"backend": len(kind), "position": self.position} for kind in kinds]}


def test_a_row_reaches_those_who_subscribed_before_it():
    desk = Desk()
    audience = Audience(desk, ["ByKind"])
    fire, flood = (Intent("u1", "ByKind", {"kind": kind}) for kind in ("fire", "flood"))
    audience.subscribe([fire, fire, flood])
    desk.position = "3"
    audience.subscribe([fire], reports=40, is_late=True)
    assert [audience.reached("ByKind", [4, 5], position) for position in ("1", "2", "3", "4")] == [0, 3, 3, 4]
    assert audience.reached("ByKind", [99], "4") == 0
    assert (audience.backends["ByKind"].since, audience.late) == ({4: 0, 5: 0}, 1)
