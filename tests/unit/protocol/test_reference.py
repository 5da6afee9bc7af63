"""The protocol's reference says what the code does."""

from __future__ import annotations

import re

from support.protocol_tables import DOCUMENT, TABLES, written
from tocsin.client import JAVASCRIPT
from tocsin.protocol import codes, messages


def test_the_tables_are_those_of_the_code() -> None:
    text = DOCUMENT.read_text()
    assert set(re.findall(r"<!-- (\w+) -->\n", text)) - {"end"} == set(TABLES)
    assert written(text) == text, "run: python tests/support/protocol_tables.py"


def test_the_document_names_the_subprotocol() -> None:
    assert f"`{messages.SUBPROTOCOL}`" in DOCUMENT.read_text()


def test_the_javascript_client_knows_the_same_protocol() -> None:
    script = JAVASCRIPT.read_text()
    assert f'SUBPROTOCOL = "{messages.SUBPROTOCOL}"' in script
    for name in ("BAD_TOKEN", "BAD_MESSAGE", "TOO_BIG", "REPLACED", "SILENT"):
        assert f"const {name} = {getattr(codes, name).number};" in script
    handled = set(re.findall(r"(\w+): \"_on\w+\"", script))
    assert handled == {kind.__struct_config__.tag for kind in messages.FromBroker.__args__}
