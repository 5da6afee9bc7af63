"""Talking to a data cluster, or to the coordinator.

Which token is shown: the one given, else one made for the moment, where there is a secret for that (``local``).
Errors that the cluster reports are told by their ``detail``.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from tocsin.cli.local import local_token, own_cluster
from tocsin.config import Config, check_address
from tocsin.errors import TocsinError, Unavailable
from tocsin.tls import trusting

MAX_ATTEMPTS = 8
_RETRIED = (429, 503)
_ADVICE = "name the cluster's data directory with --data-dir, or give a token with --token or TOCSIN_TOKEN"
_NAMED = {"cluster": "--url", "coordinator": "--coordinator"}


class ClusterProblem(TocsinError):
    """The cluster answered with an error."""

    def __init__(self, status: int, detail: str, retry_after_s: float | None = None) -> None:
        self.status, self.detail, self.retry_after_s = status, detail, retry_after_s
        super().__init__(status, detail)

    def __str__(self) -> str:
        return self.detail


class ClusterClient:
    """One cluster, over HTTP; closes its connections at the end of a ``with``."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout_s: float = 60.0,
        kind: str = "cluster",
        transport: httpx.BaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url, self._sleep, self._kind = url.rstrip("/"), sleep, kind
        self._timeout_s = timeout_s
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout_s, transport=transport, verify=tls or True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def get(self, path: str) -> Any:
        return self._ask("GET", path)

    def text(self, path: str) -> str:
        """As ``get``, for what is not JSON."""
        return self._answer("GET", path).text

    def post(self, path: str, body: Any) -> Any:
        """The answer, or ``None`` where there is nothing to say."""
        return self._ask("POST", path, json=body)

    def run(self, text: str) -> list[dict[str, Any]]:
        """The results of a script of statements."""
        results: list[dict[str, Any]] = self._ask("POST", "/statements", json={"text": text})["results"]
        return results

    def append(self, dataset: str, body: bytes, key: str, form: str = "jsonl") -> dict[str, Any]:
        """Append JSON lines or CSV; tries again while the cluster is busy or gone, which ``key`` makes harmless."""
        headers = {"Content-Type": "text/csv" if form == "csv" else "application/x-ndjson", "Idempotency-Key": key}
        path = f"/datasets/{quote(dataset, safe='')}/records"
        attempt = 0
        while True:
            try:
                receipt: dict[str, Any] = self._ask("POST", path, content=body, headers=headers)
                return receipt
            except (ClusterProblem, Unavailable) as problem:
                attempt += 1
                if attempt == MAX_ATTEMPTS or not _is_passing(problem):
                    raise
                self._sleep(_pause_s(problem, attempt))

    def _ask(self, method: str, path: str, **content: Any) -> Any:
        response = self._answer(method, path, **content)
        return None if response.status_code == httpx.codes.NO_CONTENT else _json(response, self.url)

    def _answer(self, method: str, path: str, **content: Any) -> httpx.Response:
        try:
            response = self._http.request(method, path, **content)
        except httpx.TimeoutException:
            waited = f"did not answer within {self._timeout_s:g} s"
            raise Unavailable(f"the {self._kind} at {self.url} {waited}; it may still do what was asked") from None
        except (httpx.TransportError, httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            hint = f"start one with 'tocsin {self._kind}' or name it with {_NAMED[self._kind]}"
            raise Unavailable(f"no {self._kind} answers at {self.url} ({_short(error)}); {hint}") from None
        if response.is_success:
            return response
        raise _problem(response)


def connect(config: Config, url: str | None, token: str | None) -> ClusterClient:
    """A client for the cluster that these options and the configuration name."""
    chosen = url or own_cluster(config)
    check_address("--url", chosen, own_cluster(config))
    local = None if token or config.cluster.insecure else local_token(config, chosen)
    shown, timeout_s = token or (local() if local else None), config.client.command_timeout
    return ClusterClient(chosen, shown, timeout_s=timeout_s, tls=trusted(config))


def trusted(config: Config) -> ssl.SSLContext | None:
    """The authorities that commands trust."""
    return trusting("http.ca_file", config.http.ca_file)


def may_pass(problem: TocsinError) -> bool:
    """Whether the same request may do another time: the trouble is the cluster's, not the request's."""
    is_server_side = isinstance(problem, ClusterProblem) and (problem.status >= 500 or problem.status in _RETRIED)
    return is_server_side or isinstance(problem, Unavailable)


def _is_passing(problem: TocsinError) -> bool:
    return not isinstance(problem, ClusterProblem) or problem.status in _RETRIED


def _pause_s(problem: TocsinError, attempt: int) -> float:
    asked = problem.retry_after_s if isinstance(problem, ClusterProblem) else None
    return min(30.0, asked) if asked else min(5.0, 0.1 * 2**attempt)


def _problem(response: httpx.Response) -> ClusterProblem:
    try:
        detail = response.json()["detail"]
    except (ValueError, KeyError, TypeError):
        detail = f"the cluster answered {response.status_code} {response.reason_phrase}"
    if response.status_code == httpx.codes.UNAUTHORIZED:
        detail = f"{detail}; {_ADVICE}"
    after = response.headers.get("Retry-After", "")
    return ClusterProblem(response.status_code, str(detail), float(after) if after.isdecimal() else None)


def _json(response: httpx.Response, url: str) -> Any:
    try:
        return response.json()
    except ValueError:
        raise Unavailable(f"what answers at {url} is not a Tocsin cluster") from None


def _short(error: Exception) -> str:
    return str(error).removeprefix("[Errno ").partition("] ")[2] or str(error) or type(error).__name__
