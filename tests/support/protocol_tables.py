"""The tables of docs/reference/protocol.md, made from the code. Run this file to write them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import UNSET

from tocsin.protocol import codes, messages, targets

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "protocol.md"
PARTS = (messages.Wanted, messages.Standing, messages.Refusal, messages.Hole)
_MARKED = re.compile(r"(<!-- (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WORDS = {"int": "integer", "str": "text", "float": "number", "bool": "true or false", "Raw": "any JSON", "Any": "any"}


def written(text: str) -> str:
    """The document with its tables as the code has them."""
    return _MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)


def structs_table(kinds: Sequence[type[msgspec.Struct]], first: str) -> str:
    rows = [f"| {first} | fields | meaning |", "|---|---|---|"]
    for kind in kinds:
        tag = kind.__struct_config__.tag
        name = f"`{tag}`" if tag else kind.__name__
        rows.append(f"| {name} | {_fields(kind)} | {_sentences(kind)} |")
    return "\n".join(rows) + "\n"


def codes_table() -> str:
    rows = ["| code | name | means | then the client |", "|---|---|---|---|"]
    rows += [f"| {code.number} | `{code.name}` | {code.means} | {_reaction(code.number)} |" for code in codes.ALL]
    return "\n".join(rows) + "\n"


def _reaction(number: int) -> str:
    if not codes.comes_back(number):
        return "stops"
    return "asks the coordinator, then connects" if codes.asks_where(number) else "connects again"


def _fields(kind: type[msgspec.Struct]) -> str:
    told = []
    for one in msgspec.structs.fields(kind):
        is_optional = one.default is not msgspec.NODEFAULT or one.default_factory is not msgspec.NODEFAULT
        told.append(f"`{one.encode_name}`{'?' if is_optional else ''} {_word(one.type)}")
    return ", ".join(told) or "–"


def _word(kind: Any) -> str:
    parts = get_args(kind)
    origin = getattr(kind, "__origin__", None)
    if kind in (targets.Target, *get_args(targets.Target)):
        return "target"
    if origin in (Sequence, list, tuple):
        return f"list of {_word(parts[0])}"
    if origin in (Mapping, dict):
        return f"object of {_word(parts[1])}"
    if hasattr(kind, "__metadata__"):
        return f"{_word(origin)} up to {kind.__metadata__[0].max_length} characters"
    if parts:
        return " or ".join(_word(part) for part in parts if part is not type(None) and part is not UNSET)
    name = getattr(kind, "__name__", str(kind))
    return _WORDS.get(name, name)


def _sentences(kind: type) -> str:
    own = kind.__doc__ if "__doc__" in vars(kind) else None
    return " ".join(inspect.cleandoc(own or "").split()).replace("``", "`").replace("|", "\\|")


TABLES = {
    "client": lambda: structs_table(get_args(messages.FromClient), "type"),
    "broker": lambda: structs_table(get_args(messages.FromBroker), "type"),
    "parts": lambda: structs_table(PARTS, "part"),
    "targets": lambda: structs_table(get_args(targets.Target), "kind"),
    "codes": codes_table,
}

if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
