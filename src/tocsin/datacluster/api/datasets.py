"""``/datasets``: what is stored."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from tocsin.datacluster.api.context import Shared
from tocsin.datacluster.api.named import NameAndType, find, pairs
from tocsin.datacluster.service import DatasetView
from tocsin.web.auth import Who
from tocsin.web.describe import operation, reply

router = APIRouter(tags=["datasets"])


class Dataset(msgspec.Struct, frozen=True):
    """``head`` is the sequence number of the newest record; ``rejected`` counts dead letters.

    ``problem`` says what is wrong with it: records that were lost, or files that do not verify.
    """

    name: str
    columns: list[NameAndType]
    primary_key: list[str]
    active: bool
    retain: str
    records: int
    head: int
    rejected: int
    problem: str | None


class Datasets(msgspec.Struct, frozen=True):
    datasets: list[Dataset]


MESSAGES = (Dataset, Datasets)


@router.get("/datasets", **operation(gives=Datasets, summary="List datasets"))
async def list_datasets(api: Shared, who: Who) -> Response:
    views = await api.call(api.service.datasets, who)
    return reply(Datasets([_dataset(view) for view in views]))


@router.get("/datasets/{name}", **operation(gives=Dataset, summary="Show a dataset"))
async def show_dataset(name: str, api: Shared, who: Who) -> Response:
    views = await api.call(api.service.datasets, who)
    return reply(_dataset(find("dataset", name, views)))


def _dataset(view: DatasetView) -> Dataset:
    return Dataset(
        name=view.name,
        columns=pairs(view.columns),
        primary_key=list(view.primary_key),
        active=view.is_active,
        retain=view.retain,
        records=view.records,
        head=view.head,
        rejected=view.rejected,
        problem=view.problem,
    )
