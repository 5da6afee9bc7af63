"""What the pages' modules decide without a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tocsin.dashboard.report import COLOURS
from tocsin.scenarios.city.emergencies import KINDS

Script = Callable[[str], Any]


def test_a_page_keeps_as_many_samples_as_it_is_told_and_forgets_brokers_that_are_gone(script: Script) -> None:
    found = script("""
        import { Past } from "./past.js";
        const past = new Past();
        past.begin({ kept: 3, n: 0, at: [], cov: [], maximum: [], mean: [], brokers: {} });
        const figures = { cov: 0, maximum: 0, mean: 0 };
        const broker = (name) => ({ name, bytes_in: 1, bytes_out: 2, online: 3 });
        for (let n = 1; n <= 5; n += 1) past.add({ n, at: n, figures, brokers: [broker(n < 3 ? "old" : "new")] });
        const found = { kept: past.at.length, names: past.names(), online: past.brokers.get("new").online };
    """)
    assert found == {"kept": 3, "names": ["new"], "online": [3, 3, 3]}


def test_pages_and_reports_give_brokers_the_same_colours(script: Script) -> None:
    found = script("""
        globalThis.document = { documentElement: { dataset: { theme: "light" } } };
        const { palette } = await import("./palette.js");
        const found = palette();
    """)
    assert tuple(found) == COLOURS


def test_the_form_proposes_the_kinds_of_the_city(script: Script) -> None:
    assert tuple(script('import { KINDS } from "./form.js"; const found = KINDS;')) == KINDS
