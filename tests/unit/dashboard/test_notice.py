"""Cards of notifications: a payload may be anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Script = Callable[[str], Any]

ODD = {"toString": 1, "valueOf": 1}  # what JavaScript can make no text of
PAYLOADS: list[Any] = [
    None,
    [],
    {"shelters": [None, 5, {"name": None}, {"d": 1}]},
    {"kind": ODD, "severity": ODD, "text": ODD, "metres": ODD, "other": ODD},
    {"x": ODD, "y": 1, "shelters": [{"name": "School, North", "d": ODD}]},
    {"x": 1, "y": 2, "severity": ODD, "radius": "wide", "shelters": [None, {"name": "School, North", "d": 120}]},
]


def test_any_payload_has_a_card_and_the_map_gets_only_what_it_can_draw(script: Script) -> None:
    found = script(f"""
        import {{ card, placeOf, reportOf, sheltersOn }} from "./notice.js";
        const texts = (made) => made.children.map((one) => (typeof one === "object" ? texts(one) : one)).join("|");
        globalThis.document = {{ createElement: () => ({{
          children: [],
          setAttribute() {{}},
          append(...all) {{ this.children.push(...all.map((one) => (one.children ? one : `${{one}}`))); }},
        }}) }};
        const world = {{ shelters: [["School, North", 1, 2, 50]] }};
        const many = Array.from({{ length: 500 }}, (_, at) => [`f${{at}}`, "b".repeat(10_000)]);
        const long = {{ text: "a".repeat(1_000_000), ...Object.fromEntries(many) }};
        const cards = [...{json.dumps(PAYLOADS)}, long].map((one) => texts(card(one, {{ name: "Near" }})));
        const last = {json.dumps(PAYLOADS[-1])};
        const found = {{
          cards,
          report: reportOf(last, 7),
          marks: sheltersOn(world, last),
          place: placeOf({{ x: 1, y: 2, radius: -5 }}),
        }};
    """)
    assert all("Near" in card for card in found["cards"])
    assert "School, North, 120 m" in found["cards"][-2]
    assert "(1,000,000 characters)" in found["cards"][-1]
    assert len(found["cards"][-1]) < 150_000
    assert (found["report"], found["place"]) == ([7, "", 1, 1, 2, 300], {"x": 1, "y": 2, "radius": 0})
    assert [(one["x"], one["y"]) for one in found["marks"]] == [(1, 2)]
