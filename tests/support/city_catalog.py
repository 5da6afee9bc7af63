"""The small city that the compiler's unit tests speak of."""

from __future__ import annotations

from tocsin.compiler.channel import CompileOptions, compile_channel
from tocsin.compiler.plan import CompiledChannel
from tocsin.model.catalog import ChannelSpec, Column, DatasetSpec, Parameter
from tocsin.model.types import SqlType


def columns(text: str) -> tuple[Column, ...]:
    return tuple(Column(name, SqlType(kind)) for name, kind in (part.split() for part in text.split(",")))


CATALOG = {
    d.name.lower(): d
    for d in (
        DatasetSpec(
            "Reports",
            columns("id INT,eventType STRING,x DOUBLE,y DOUBLE,lat DOUBLE,lon DOUBLE,sev INT,text STRING,at TIMESTAMP"),
            active=True,
        ),
        DatasetSpec("Users", columns("user STRING,x DOUBLE,y DOUBLE"), primary_key=("user",)),
        DatasetSpec("Shelters", columns("name STRING,x DOUBLE,y DOUBLE,cap INT"), primary_key=("name",)),
    )
}


def parameters(text: str) -> tuple[Parameter, ...]:
    """``"t STRING, l STRING[]"``"""
    found = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, kind = part.split()
        found.append(Parameter(name, SqlType(kind.removesuffix("[]"), is_array=kind.endswith("[]"))))
    return tuple(found)


def compiled(query: str, params: str = "", options: CompileOptions | None = None) -> CompiledChannel:
    return compile_channel(ChannelSpec("Alerts", parameters(params), query), CATALOG, options)
