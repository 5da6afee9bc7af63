"""Posting to brokers: one deadline for the whole attempt, and nothing of an answer but its status counts.

What a broker answers is its own business, as much of it as it likes: only a short body of stated length is
read, so that the connection can be used again; with any other the connection is closed.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass

import httpx

_SHORT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    reason: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Posting:
    """One thread with an event loop; ``post`` may be called from any other."""

    def __init__(self, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(timeout=None, trust_env=False, verify=tls or True)
        self._lock = threading.Lock()
        self._is_closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="posting", daemon=True)
        self._thread.start()

    def post(self, url: str, content: str, headers: Mapping[str, str]) -> Answered:
        """TimeoutError after the deadline, CancelledError when closed meanwhile, else httpx's errors."""
        with self._lock:
            if self._is_closed:
                raise CancelledError
            sending = asyncio.run_coroutine_threadsafe(self._post(url, content, headers), self._loop)
        return sending.result()

    def close(self) -> None:
        """End what is under way, at once."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _post(self, url: str, content: str, headers: Mapping[str, str]) -> Answered:
        try:
            async with asyncio.timeout(self._timeout_s):
                async with self._http.stream("POST", url, content=content, headers=headers) as answer:
                    if _is_short(answer):
                        async for _ in answer.aiter_raw():
                            pass
                    return Answered(answer.status_code, answer.reason_phrase)
        except TimeoutError:
            raise TimeoutError(f"no answer within {self._timeout_s:g} s") from None

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._http.aclose()


def _is_short(answer: httpx.Response) -> bool:
    length = answer.headers.get("content-length", "")
    return answer.status_code == 204 or (length.isascii() and length.isdecimal() and int(length) <= _SHORT_BYTES)
