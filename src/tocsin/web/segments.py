"""Names with slashes in paths: ``%2F`` belongs to a name, ``/`` ends it.

Servers hand on paths decoded, in which the two are the same. Here a path is decoded segment by segment, and a
route's ``{user:name}`` is one segment, whatever characters it has.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.convertors import Convertor, register_url_convertor
from starlette.types import ASGIApp, Receive, Scope, Send


class NameConvertor(Convertor[str]):
    """One segment of a path that ``Segments`` made."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return unquote(value)

    def to_string(self, value: str) -> str:
        return quote(value, safe="")


register_url_convertor("name", NameConvertor())


def name_of(parameter: str) -> str:
    """The place of a name in a route's path."""
    return f"{{{parameter}:name}}"


class Segments:
    """Around the routes: their path is decoded, except for slashes in names, and percent signs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "raw_path" in scope:
            scope["path"] = "/".join(map(_decoded, scope["raw_path"].decode("ascii").split("/")))
        await self._app(scope, receive, send)


def _decoded(part: str) -> str:
    return unquote(part).replace("%", "%25").replace("/", "%2F")
