"""The client: subscribe, publish, send records; come back, catch up and move without the application's help.

async with connect(coordinator="http://127.0.0.1:8440", token=token) as session:
    async for item in session.subscribe(channel("Near", kind="fire", x=0, y=0, radius=500)):
        if isinstance(item, Gap):
            print("missed", item.count, item.reason)
        else:
            print(item.payload)
"""

from pathlib import Path

from tocsin.client.session import Session, connect
from tocsin.client.subscription import Subscription
from tocsin.client.wishes import channel, default_id, topic
from tocsin.errors import BrokerRefused, Uncertain
from tocsin.protocol.inbox import Delivered as Notification
from tocsin.protocol.inbox import Missed as Gap

JAVASCRIPT = Path(__file__).parent / "js" / "tocsin.js"
"""The client for browsers and Node, one module."""

__all__ = [
    "JAVASCRIPT", "BrokerRefused", "Gap", "Notification", "Session", "Subscription", "Uncertain", "channel", "connect",
    "default_id", "topic",
]  # fmt: skip
