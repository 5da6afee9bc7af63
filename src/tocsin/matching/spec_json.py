"""A specification as JSON, for the meta data of an index, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tocsin.matching.spec import Compare, Equal, HasWord, IndexSpec, Member, Metric, Near, Op, Predicate
from tocsin.model.types import SqlType

_KINDS: dict[str, type[Predicate]] = {kind.__name__: kind for kind in (Equal, Member, Compare, HasWord, Near)}
_ENUMS = {"op": Op, "metric": Metric}


def spec_to_json(spec: IndexSpec) -> dict[str, Any]:
    return {
        "predicates": [{"kind": type(p).__name__, **asdict(p)} for p in spec.predicates],
        "probe_types": [[name, asdict(kind)] for name, kind in spec.probe_types],
        "param_types": [[name, asdict(kind)] for name, kind in spec.param_types],
        "cell": spec.cell,
    }


def spec_from_json(stored: dict[str, Any]) -> IndexSpec:
    return IndexSpec(
        tuple(_predicate(dict(p)) for p in stored["predicates"]),
        tuple((name, SqlType(**kind)) for name, kind in stored["probe_types"]),
        tuple((name, SqlType(**kind)) for name, kind in stored["param_types"]),
        stored["cell"],
    )


def _predicate(fields: dict[str, Any]) -> Predicate:
    kind = _KINDS[fields.pop("kind")]
    values: dict[str, Any] = {name: _ENUMS[name](v) if name in _ENUMS else v for name, v in fields.items()}
    return kind(**values)
