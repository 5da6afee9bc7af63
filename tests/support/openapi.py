"""Holding an application to its own OpenAPI document, with schemathesis.

``check_operation`` sends requests that fit the document and requests that do not, and demands that no answer
is a server error and that every answer is one that the document describes. The same seed is used every time,
so a failure repeats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SEED = 20_240_607


def operation_names(document: Mapping[str, Any]) -> list[str]:
    """``GET /datasets`` and so on, for a test to be parametrised with."""
    return sorted(f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item)


def check_operation(
    app: Any,
    name: str,
    *,
    headers: Mapping[str, str],
    examples: int,
    known: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Check one operation; gives the number of requests sent.

    ``known`` has, by path, what is known to succeed there (``path_parameters``, ``query``, ``body``); it is
    tried besides random requests.
    """
    method, _, path = name.partition(" ")
    operation = schemathesis.openapi.from_asgi("/openapi.json", app)[path][method]
    sent = _run(operation, GenerationMode.POSITIVE, headers, examples)
    if known and path in known:
        fixed = {part: value for part, value in known[path].items() if part != "body" or operation.body}
        sent += _run(operation, GenerationMode.POSITIVE, headers, examples, **fixed)
    if operation.body or operation.query:
        sent += _run(operation, GenerationMode.NEGATIVE, headers, examples)
    return sent


def _run(operation: APIOperation, mode: GenerationMode, headers: Mapping[str, str], examples: int, **fixed: Any) -> int:
    sent = 0

    @seed(SEED)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode, **fixed))
    def run(case: schemathesis.Case) -> None:
        nonlocal sent
        sent += 1
        case.call_and_validate(headers=dict(headers), checks=CHECKS)

    run()
    return sent
