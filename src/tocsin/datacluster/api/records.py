"""``/datasets/{name}/records``: records in, keyed records out.

A batch is read under its limits, handed to the service whole, and answered when it is durable. The same
``Idempotency-Key`` again gives the first receipt, so a sender that saw no answer simply repeats itself;
with another body it is refused.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Request
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.service import Receipt
from tocsin.web.auth import Who
from tocsin.web.bodies import (
    CSV,
    GZIP,
    LINES,
    check_items,
    check_media_type,
    encoding,
    inflate,
    read_bytes,
    read_json,
)
from tocsin.web.describe import lines_body, operation, reply

router = APIRouter(tags=["records"])

IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=255, pattern=r"^[!-~]+$", description="Chosen by you."),
]


class RejectedRecord(msgspec.Struct, frozen=True):
    line: int
    reason: str


class BatchReceipt(msgspec.Struct, frozen=True):
    """Durable; accepted records got the sequence numbers ``first`` to ``last``."""

    accepted: int
    rejected: int
    first: int
    last: int
    duplicate: bool
    problems: list[RejectedRecord]


class RecordKeys(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The primary keys of records to delete, columns as members."""

    keys: list[dict[str, Any]]


class Deletion(msgspec.Struct, frozen=True):
    deleted: int


MESSAGES = (BatchReceipt, RecordKeys, Deletion)


@router.post(
    "/datasets/{name}/records",
    **operation(gives=BatchReceipt, summary="Append records", openapi_extra=lines_body(*LINES, CSV)),
)
async def append_records(
    name: str, request: Request, api: Shared, who: Who, idempotency_key: IdempotencyKey = None
) -> Response:
    """Append JSON lines or CSV. Records that do not fit go to the dead letters and are told in the receipt."""
    form = "csv" if check_media_type(request, (*LINES, CSV)) == CSV else "json"
    is_gzip = encoding(request) == GZIP
    who.need("ingest", name)
    limits = api.limits
    with api.admission.share() as share:
        body = await read_bytes(request, limits.ingest_bytes, limits.body_timeout_s, share.take)
        with api.admission.place():
            if is_gzip:
                sent, body = len(body), await api.call_in(api.lanes.ingest, inflate, body, limits.ingest_bytes)
                share.take(max(0, len(body) - sent))
            receipt = await api.call_in(api.lanes.ingest, api.service.ingest, name, body, idempotency_key, who, form)
    return reply(_receipt(receipt))


@router.delete(
    "/datasets/{name}/records", **operation(takes=RecordKeys, gives=Deletion, summary="Delete keyed records")
)
async def delete_records(name: str, request: Request, api: Shared, who: Who) -> Response:
    """Delete the records with these keys; answers how many keys were named."""
    who.need("ingest", name)
    wanted = await read_json(request, RecordKeys, api.limits)
    check_items("keys in one request", len(wanted.keys), api.limits.items)
    deleted = await api.call_in(api.lanes.ingest, api.service.delete_records, name, wanted.keys, who)
    return reply(Deletion(deleted))


def _receipt(receipt: Receipt) -> BatchReceipt:
    return BatchReceipt(
        accepted=receipt.accepted,
        rejected=receipt.rejected,
        first=receipt.first,
        last=receipt.last,
        duplicate=receipt.is_duplicate,
        problems=[RejectedRecord(problem.line, problem.reason) for problem in receipt.problems],
    )
