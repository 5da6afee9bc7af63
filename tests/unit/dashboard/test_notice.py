"""Cards of notifications: a payload may be anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tocsin.dashboard.pages import STATIC

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
    assert "School, North, 120\u00a0m" in found["cards"][-2]
    assert "(1,000,000 characters)" in found["cards"][-1]
    assert len(found["cards"][-1]) < 150_000
    assert (found["report"], found["place"]) == ([7, "", 1, 1, 2, 300], {"x": 1, "y": 2, "radius": 0})
    assert [(one["x"], one["y"]) for one in found["marks"]] == [(1, 2)]


@pytest.mark.parametrize(
    ("at", "told"),
    [
        pytest.param(None, "Near · received 12:00:00", id="none"),
        pytest.param("2026-11-18T08:30:05Z", "Near · 08:30:05 · received 12:00:00", id="of today"),
        pytest.param("2026-11-16T08:30:05.5+00:00", "Near · 16 Nov 08:30:05 · received 12:00:00", id="of another day"),
        pytest.param("2025-11-18T08:30:05Z", "Near · 18 Nov 2025 08:30:05 · received 12:00:00", id="of another year"),
        pytest.param(1_794_990_605, "Near · 08:30:05 · received 12:00:00", id="in seconds"),
        pytest.param("8 o'clock", "Near · received 12:00:00", id="no timestamp"),
        pytest.param(ODD, "Near · received 12:00:00", id="odd"),
    ],
)
def test_a_card_says_when_it_was_received_and_when_it_happened_if_that_is_told(
    script: Script, at: Any, told: str
) -> None:
    found = script(f"""
        process.env.TZ = "UTC";
        const texts = (made) => made.children.map((one) => (one.children ? texts(one) : one)).flat();
        globalThis.document = {{ createElement: () => ({{
          children: [], setAttribute() {{}}, append(...all) {{ this.children.push(...all); }},
        }}) }};
        const {{ card }} = await import("./notice.js");
        const found = texts(card({{ kind: "fire", at: {json.dumps(at)} }}, {{ name: "Near" }}, 1_795_003_200));
    """)
    assert told in found
    assert ("at" in found) == ("·" not in told.removesuffix(" · received 12:00:00"))  # else it is in the list below


def test_what_is_read_out_is_short(script: Script) -> None:
    found = script("""
        import { heard } from "./notice.js";
        const payload = { kind: "fire", severity: 4, text: "smoke ".repeat(1_000), x: 1, y: 2 };
        const payloads = [payload, null, { kind: null, severity: null, text: null }];
        const found = payloads.map((one, at) => heard(1_200 * at + 1, one, { name: "Near" }));
    """)
    assert found[0].startswith("1 notification; newest: fire, severity 4, smoke smoke")
    assert len(found[0]) < 200
    assert found[1:] == ["1,201 notifications; newest: Near", "2,401 notifications; newest: Near"]


def test_a_page_reads_out_one_line_and_not_every_card() -> None:
    page = (STATIC / "me.html").read_text()
    assert 'id="heard" role="status"' in page
    assert "aria-live" not in page
