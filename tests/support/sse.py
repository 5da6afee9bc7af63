"""Event streams as a client reads them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx


class Events:
    """An event stream's client: gives (event, data, id) of each event that has data."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> tuple[str, Any, str | None]:
        fields: dict[str, str] = {}
        while True:
            line = await asyncio.wait_for(anext(self._lines), 10)
            if not line and "data" in fields:
                return fields["event"], json.loads(fields["data"]), fields.get("id")
            name, _, value = line.partition(": ")
            if name:
                fields[name] = fields[name] + "\n" + value if name == "data" and name in fields else value
