"""What the pages' modules decide without a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tocsin.dashboard.lab import SchemeAsked, StudyAsked
from tocsin.dashboard.pages import STATIC
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


def test_what_nobody_told_is_no_zero(script: Script) -> None:
    found = script("""
        import { Past } from "./past.js";
        const past = new Past();
        past.begin({ kept: 3, n: 0, at: [], cov: [], maximum: [], mean: [], brokers: {} });
        const broker = { name: "a", bytes_in: 1, bytes_out: 2, online: 3 };
        past.add({ n: 1, at: 1, figures: { cov: 0, maximum: 3, mean: 3 }, brokers: [{ ...broker, state: "live" }] });
        past.add({ n: 2, at: 2, figures: null, brokers: [{ ...broker, state: "unknown" }] });
        const found = [past.cov, past.brokers.get("a").online];
    """)
    assert found == [[0, None], [3, None]]


def test_pages_and_reports_give_brokers_the_same_colours(script: Script) -> None:
    found = script("""
        globalThis.document = { documentElement: { dataset: { theme: "light" } } };
        const { palette } = await import("./palette.js");
        const found = palette();
    """)
    assert tuple(found) == COLOURS


def test_the_form_proposes_the_kinds_of_the_city(script: Script) -> None:
    assert tuple(script('import { KINDS } from "./form.js"; const found = KINDS;')) == KINDS


@pytest.mark.parametrize(
    ("mark", "taken", "spot"),
    [
        pytest.param([100, 50], [], [108, 54], id="right of its mark"),
        pytest.param([370, 50], [], [282, 54], id="left where it would be cut at the right"),
        pytest.param([100, 50], [[120, 40, 200, 60]], [12, 54], id="left where another text is"),
        pytest.param([60, 50], [[80, 46, 200, 60]], [20, 38], id="above where there is no room beside"),
        pytest.param([390, 50], [[300, 46, 382, 60]], [317, 38], id="above, and not cut"),
        pytest.param([60, 8], [[80, 0, 200, 14]], [20, 28], id="below at the upper edge"),
        pytest.param([100, 50], [[0, 0, 400, 100]], [108, 54], id="over another text rather than cut"),
    ],
)
def test_a_label_is_neither_cut_nor_written_over_another(
    script: Script, mark: list[int], taken: list[list[int]], spot: list[int]
) -> None:
    """80 pixels of text in a box of 400 by 100."""
    asked = f"beside({mark}, 80, [400, 100], {taken})"
    assert script(f'import {{ beside }} from "./labels.js"; const found = {asked};') == spot


def test_the_name_of_a_district_stays_within_the_map(script: Script) -> None:
    found = script(
        'import { centred } from "./labels.js"; const found = [5, 200, 398].map((x) => centred(x, 80, 400));'
    )
    assert found == [3, 160, 317]


def test_the_name_of_a_district_makes_room_for_a_broker(script: Script) -> None:
    found = script("""
        import { around } from "./labels.js";
        const broker = [192, 42, 208, 58];
        const spots = [[], [broker], [broker, [150, 20, 250, 36]]];
        const found = spots.map((taken) => around([200, 50], 80, [400, 100], taken));
    """)
    assert found == [[160, 50], [160, 30], [160, 70]]


def test_a_report_is_a_diamond_of_at_least_six_pixels(script: Script) -> None:
    found = script('import { diamondPx } from "./marks.js"; const found = [-1, 1, 3, 5, 99].map(diamondPx);')
    assert found == [6, 6, 8, 10, 10]


def test_reports_are_drawn_once_for_each_severity_and_then_stamped(script: Script) -> None:
    """10,000 people leave little time in a frame."""
    found = script("""
        let made = 0;
        let stamped = 0;
        const calls = new Set();
        const context = () => new Proxy({ canvas: {} }, {
          get: (target, name) => target[name] ?? ((...of) => (calls.add(name), name === "drawImage" && (stamped += 1))),
          set: (target, name, value) => ((target[name] = value), true),
        });
        globalThis.document = {
          documentElement: { dataset: {} },
          createElement: () => ((made += 1), { getContext: context }),
        };
        globalThis.getComputedStyle = () => ({ getPropertyValue: () => "#ff0000" });
        const { Reports } = await import("./marks.js");
        const view = { factor: 1, at: (x, y) => [x, y] };
        const reports = new Reports();
        for (let n = 0; n < 40; n += 1) reports.add({ reports: [[n, "fire", 1 + (n % 2), n, n, 100]] }, 0);
        for (const now of [10, 20, 30]) reports.draw(context(), view, now);
        const found = { made, stamped, isSquare: calls.has("fillRect"), after: reports.areSeen(20_000) };
    """)
    assert found == {"made": 2, "stamped": 120, "isSquare": False, "after": False}


def test_brokers_stand_where_they_say_and_nowhere_else(script: Script) -> None:
    found = script("""
        globalThis.document = { documentElement: { dataset: {} } };
        const { standing } = await import("./map.js");
        const found = [standing({ brokers: ["a", "b"], at: [[1, 2], null] }), standing({ brokers: ["a"] })];
    """)
    assert found == [[{"x": 1, "y": 2, "label": "a"}], []]


def test_the_name_of_a_broker_stands_beside_it(script: Script) -> None:
    found = script("""
        import { beside } from "./labels.js";
        const { brokerBoxes } = await import("./marks.js");
        const own = brokerBoxes([{ x: 200, y: 50 }], { at: (x, y) => [x, y] });
        const taken = [own, [...own, [210, 40, 300, 60]]];
        const found = taken.map((boxes) => beside([200, 50], 80, [400, 100], boxes));
    """)
    assert found == [[208, 54], [112, 54]]


def test_the_eleventh_broker_has_a_colour_again_and_a_hollow_chip(script: Script) -> None:
    found = script("""
        const setAttribute = function (_, value) { this.name = value; };
        const made = () => ({ style: { setProperty() {} }, setAttribute, append() {} });
        globalThis.document = { documentElement: { dataset: {} }, createElement: made };
        const { chip, colourOf, numberAll } = await import("./palette.js");
        numberAll(Array.from({ length: 11 }, (_, at) => `broker_${at + 1}`));
        const [first, last] = ["broker_1", "broker_11"];
        const found = [colourOf(first) === colourOf(last), chip(first).name, chip(last).name];
    """)
    assert found == [True, "chip", "chip hollow"]


def test_a_map_is_brought_closer_and_moved_by_buttons_and_keys(script: Script) -> None:
    found = script("""
        const listening = () => ({
          heard: {}, children: [], setAttribute() {},
          addEventListener(name, work) { this.heard[name] = work; },
          append(...all) { this.children.push(...all); },
          replaceChildren(...all) { this.children = all; },
        });
        globalThis.document = { createElement: listening };
        const { setUpZoom } = await import("./zoom.js");
        const done = [];
        const map = { zoom: (by) => done.push(by > 1 ? "closer" : "farther"), pan: (...by) => done.push(by) };
        const target = listening();
        setUpZoom(target, map, "how");
        for (const button of target.children) button.heard.click();
        for (const key of ["ArrowRight", "Tab"]) target.heard.keydown({ key, preventDefault: () => done.push(key) });
        const found = done;
    """)
    assert found == ["closer", "farther", "ArrowRight", [-60, 0]]


def test_of_many_texts_only_the_newest_is_read_out_now_and_then(script: Script) -> None:
    found = script("""
        import { paced } from "./announce.js";
        const due = [];
        globalThis.setTimeout = (work, ms) => due.push([work, ms]);
        const said = [];
        const say = paced((text) => said.push(text), 5_000);
        for (const text of ["1", "2", "3"]) say(text);
        const atOnce = [...said];
        for (let turn = 0; turn < 2; turn += 1) due.shift()[0](); // five seconds later, and again
        const isQuiet = due.length === 0;
        say("4");
        const found = { atOnce, said, isQuiet, ms: due[0][1] };
    """)
    assert found == {"atOnce": ["1"], "said": ["1", "3", "4"], "isQuiet": True, "ms": 5_000}


def test_an_alert_is_read_out_when_it_comes_and_not_whenever_its_figures_change(script: Script) -> None:
    found = script("""
        import { Heard } from "./alerts.js";
        const alert = (id, text) => ({ id, text });
        const heard = new Heard();
        const found = [
          [[], []], [[alert("lag", "31 s behind")], []], [[alert("lag", "32 s behind")], []],
          [[alert("lag", "33 s behind"), alert("cov", "uneven")], ["no answer"]],
          [[alert("cov", "uneven")], []], [[], []], [[], []],
        ].map(([alerts, problems]) => heard.take({ alerts, problems }));
    """)
    calm = "Everything is within its budgets: lag, balance, loss."
    assert found == [
        None,
        "1 alert; newest: 31 s behind",
        None,
        "3 alerts; newest: no answer",
        "1 alert left.",
        calm,
        None,
    ]


@pytest.mark.parametrize("is_still", [False, True])
def test_nobody_glides_and_no_ring_grows_for_who_wants_less_motion(script: Script, is_still: bool) -> None:
    found = script(f"""
        const context = () => new Proxy({{ canvas: {{}} }}, {{ get: (target, name) => target[name] ?? (() => {{
          if (name === "arc") rings += 1;
        }}) }});
        let rings = 0;
        globalThis.matchMedia = () => ({{ matches: {str(is_still).lower()} }});
        const createElement = () => ({{ getContext: context }});
        globalThis.document = {{ documentElement: {{ dataset: {{}} }}, createElement }};
        globalThis.getComputedStyle = () => ({{ getPropertyValue: () => "#ff0000" }});
        const {{ People }} = await import("./people.js");
        const {{ Reports }} = await import("./marks.js");
        const people = new People();
        for (const [xy, now] of [["AAAAAA==", 0], ["/////w==", 1_000]]) people.move({{ xy }}, now);
        const reports = new Reports();
        reports.add({{ reports: [[1, "fire", 5, 1, 1, 100]] }}, 1_000);
        reports.draw(context(), {{ factor: 1, at: (x, y) => [x, y] }}, 1_500);
        const found = [people.areMoving(1_500), rings];
    """)
    assert found == ([False, 0] if is_still else [True, 1])


def test_a_place_on_the_screen_is_found_again_however_close_one_looks(script: Script) -> None:
    found = script("""
        import { View } from "./view.js";
        const view = new View();
        view.fit([10000, 8000], 500, 500);
        const before = [view.at(0, 8000), view.metres(250, 250), view.metres(5, 5)];
        view.zoom(2);
        view.pan(-1000, 0);
        const found = [...before, view.at(10000, 4000), view.metres(...view.at(9000, 5000))];
    """)
    assert found == [[0, 50], [5000, 4000], None, [500, 250], [9000, 5000]]


def test_a_region_belongs_to_the_broker_with_most_people_there(script: Script) -> None:
    found = script("""
        import { busiest } from "./people.js";
        const spots = new Uint16Array([0, 0, 1, 1, 2, 2, 65535, 65535, 65535, 0]);
        const found = busiest(spots, new Uint8Array([1, 0, 1, 0, 255]), 2, 2, 2);
    """)
    assert found == [1, -1, -1, 0]


@pytest.mark.parametrize(
    ("highest", "texts"),
    [
        (1_000, ["0", "200 B/s", "400 B/s", "600 B/s", "800 B/s", "1 kB/s"]),
        (410_000, ["0", "100 kB/s", "200 kB/s", "300 kB/s", "400 kB/s"]),
        (2_300_000, ["0", "500 kB/s", "1 MB/s", "1.5 MB/s", "2 MB/s"]),
        (1, ["0", "1 B/s"]),
        (3, ["0", "1 B/s", "2 B/s", "3 B/s"]),
    ],
)
def test_an_axis_of_loads_has_round_values_with_their_unit(script: Script, highest: float, texts: list[str]) -> None:
    found = script(f'import {{ rateTicks }} from "./charts.js"; const found = rateTicks({highest});')
    assert found["ticktext"] == texts


def test_an_axis_reaches_the_highest_line_or_the_top_of_the_stack(script: Script) -> None:
    found = script("""
        import { highestOf } from "./charts.js";
        const lines = [{ y: [1, null, 4] }, { y: [2, 5, 3] }];
        const found = [highestOf(lines, false), highestOf(lines, true), highestOf([], true), highestOf([], false)];
    """)
    assert found == [5, 7, 0, 0]


def test_what_nobody_told_is_neither_drawn_nor_filled(script: Script) -> None:
    found = script("""
        globalThis.document = { documentElement: { dataset: { theme: "light" } } };
        globalThis.getComputedStyle = () => ({ getPropertyValue: () => "#000000" });
        globalThis.window = { Plotly: { react: (target, traces) => traces } };
        const { draw } = await import("./charts.js");
        const [x, a, b] = [[0, 1, 2, 3, 4], [1, null, null, 4, 5], [6, null, null, 9, 10]];
        const lines = [{ name: "a", y: a, colour: "#111111", isArea: true }, { name: "b", y: b, colour: "#222222" }];
        const told = ({ name, x, y, stackgroup }) => [name, x, y, stackgroup ?? null];
        const drawn = (options) => draw({}, x, lines, options).map(told);
        const found = [drawn({}), drawn({ isStacked: true }), draw({}, x, [{ y: [null] }], {}), draw({}, [], [], {})];
    """)
    alone, stacked, *empty = found
    told = [["a", [0], [1]], ["b", [0], [6]], ["a", [3, 4], [4, 5]], ["b", [3, 4], [9, 10]]]
    assert [one[:3] for one in alone] == [one[:3] for one in stacked] == told
    assert {one[3] for one in alone} == {None}
    first, second = stacked[0][3], stacked[2][3]
    assert [one[3] for one in stacked] == [first, first, second, second]
    assert first != second
    assert empty == [[], []]


def test_a_page_asks_again_until_somebody_answers_and_ends_where_it_is_refused(script: Script) -> None:
    found = script("""
        globalThis.sessionStorage = { getItem: () => null };
        globalThis.location = { href: "http://h/" };
        const headers = new Headers({ "content-type": "application/json" });
        const answer = (status, body) => ({ ok: status < 400, status, headers, json: async () => body });
        const answers = [null, answer(503, {}), answer(200, { position: "p" }), answer(403, { detail: "no" })];
        globalThis.fetch = async () => answers.shift() ?? Promise.reject(new TypeError());
        const pauses = [];
        globalThis.setTimeout = (work, ms) => (pauses.push(ms), work());
        const { askPatiently } = await import("./shell.js");
        let waits = 0;
        const options = { onwait: () => (waits += 1) };
        const first = await askPatiently("/api/history", options);
        const refused = await askPatiently("/api/history", options).catch(({ message }) => message);
        const found = [first.position, waits, refused, pauses];
    """)
    assert found == ["p", 2, "no", [5_000, 5_000]]


POLICIES = """
    const named = (name, options = {}) => ({ name, options });
    const policies = (migrate, shuffle = null, placement = "nearest") => ({
      placement: named(placement), balancing: { migrate: named(migrate), shuffle, options: { patience: "3" } },
    });
"""


def test_a_switch_asks_for_what_was_changed_and_leaves_what_another_chose(script: Script) -> None:
    found = script(f"""
        import {{ asked, changesOf, namesOf }} from "./choice.js";
        {POLICIES}
        const shown = namesOf(policies("xbal"));
        const changes = changesOf(shown, {{ ...shown, shuffle: "gsh" }});
        const found = [
          changes, asked(policies("ldm"), changes), changesOf(shown, {{ ...shown }}),
          asked(policies("ldm"), changesOf(shown, {{ ...shown, migrate: "(none)", placement: "random" }})),
        ];
    """)
    options, gsh = {"patience": "3"}, {"name": "gsh", "options": {}}
    assert found == [
        [{"field": "shuffle", "from": "(none)", "to": "gsh"}],
        {"balancing": {"migrate": {"name": "ldm", "options": {}}, "shuffle": gsh, "options": options}},
        [],
        {
            "placement": {"name": "random", "options": {}},
            "balancing": {"migrate": None, "shuffle": None, "options": options},
        },
    ]


@pytest.mark.parametrize(
    ("later", "followed"),
    [
        pytest.param(["xbal", "xbal", "ldm"], [False, False, True], id="samples from before the switch"),
        pytest.param(["ldm", "xbal"], [True, True], id="another switched back"),
        pytest.param(["xbal", "sdm"], [False, True], id="another chose a third"),
        pytest.param(["xbal"] * 4, [False, False, True, True], id="another switched back at once"),
    ],
)
def test_after_a_switch_the_form_does_not_go_back(script: Script, later: list[str], followed: list[bool]) -> None:
    found = script(f"""
        import {{ Recent }} from "./choice.js";
        {POLICIES}
        const recent = new Recent();
        recent.take(policies("xbal"));
        recent.switched();
        const found = {later}.map((name) => recent.take(policies(name)));
    """)
    assert found == followed


def test_the_lab_leaves_the_number_of_brokers_to_a_world_that_has_its_own(script: Script) -> None:
    found = script("""
        import { hasAnyBrokers, question } from "./study.js";
        const wanted = new FormData();
        const numbers = { subscribers: "50", brokers: "7", seed: "0", alpha: "0.1", minutes: "2", moves_per_s: "" };
        const fields = { world: "simulation", scheme: "ldm", ...numbers };
        for (const [name, value] of Object.entries(fields)) wanted.set(name, value);
        const whole = question(wanted);
        wanted.delete("brokers"); // as a browser does with a field that is disabled
        const found = [whole, "brokers" in question(wanted), ["simulation", "prototype"].map(hasAnyBrokers)];
    """)
    asked, has_brokers, any_brokers = found
    assert msgspec.convert(asked, StudyAsked) == StudyAsked(
        [SchemeAsked(migrate="ldm")], subscribers=50, brokers=7, duration_s=120, moves_per_s=None
    )
    assert (has_brokers, any_brokers) == (False, [True, False])


def test_what_scrolls_is_reached_by_keyboard() -> None:
    texts = [path.read_text() for path in STATIC.glob("*.html")]
    lists = [tag for text in texts for tag in re.findall(r'<\w+ class="(?:feed|cards|scroll)"[^>]*>', text)]
    assert len(lists) >= 5
    assert [tag for tag in lists if 'tabindex="0"' not in tag] == []


def test_a_text_in_the_map_is_one_child() -> None:
    """It is laid out as a grid, in which every child takes a line of its own."""
    texts = [path.read_text() for path in STATIC.glob("*.html")]
    found = [one for text in texts for one in re.findall(r'<p class="empty" id="no-(?:city|map)">(.*?)</p>', text)]
    assert len(found) == 2
    assert [one for one in found if "<" in one and not re.fullmatch(r"<span>.*</span>", one)] == []
