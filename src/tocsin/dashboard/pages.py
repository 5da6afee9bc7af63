"""The pages: files as they are, from this package, from the JavaScript client and from the installed plotly.

Nothing comes from another host, and the pages are told to take nothing from one: scripts only from here, connections
to wherever coordinator, cluster and brokers are.
"""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tocsin.client import JAVASCRIPT
from tocsin.errors import NotFound, Unavailable

router = APIRouter(include_in_schema=False)

STATIC = Path(__file__).parent / "static"
PAGES = {"operator": "operator.html", "city": "city.html", "me": "me.html", "lab": "lab.html"}
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self' http: https: ws: wss:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": POLICY}
_PACKED_FROM = 1_000  # bytes; shorter files go as they are


def plotly() -> Path:
    """The library's script, inside the installed package, which itself is not imported."""
    spec = find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("plotly is not installed; run: pip install 'tocsin[dashboard]'")
    return Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


@router.get("/")
async def first() -> Response:
    return RedirectResponse("/operator")


@router.get("/operator")
@router.get("/city")
@router.get("/me")
@router.get("/lab")
async def page(request: Request) -> Response:
    return _file(STATIC / PAGES[request.url.path.strip("/")], request)


@router.get("/static/{name}")
async def static(name: str, request: Request) -> Response:
    known = {path.name: path for path in STATIC.iterdir() if path.is_file()}
    known |= {"tocsin.js": Path(JAVASCRIPT), "plotly.js": plotly()}
    if name not in known:
        raise NotFound("file", name)
    return _file(known[name], request)


def _file(path: Path, request: Request) -> Response:
    body, packed, tag = _content(path, path.stat().st_mtime_ns)
    headers = HEADERS | {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if packed and "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], body = "gzip", packed
    kind = guess_type(path.name)[0] or "application/octet-stream"
    return Response(body, headers=headers, media_type="text/javascript" if path.suffix == ".js" else kind)


@cache
def _content(path: Path, changed: int) -> tuple[bytes, bytes | None, str]:
    """The bytes, the same packed, and a tag that changes with them."""
    body = path.read_bytes()
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= _PACKED_FROM else None
    return body, packed, f'"{blake2b(body, digest_size=12).hexdigest()}"'
