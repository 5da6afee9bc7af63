"""What the operator's page says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

Script = Callable[[str], Any]
MOVE = {"user": "bob", "source": "broker_2", "to": "broker_3", "cause": "drain broker_2: fewest users"}


def said(script: Script, call: str, *arguments: Any) -> Any:
    given = ", ".join(json.dumps(one) for one in arguments)
    return script(f'import * as words from "./words.js"; const found = words.{call}({given});')


@pytest.mark.parametrize(
    ("state", "outcome", "sentence"),
    [
        ("refused", "the destination drains", "bob does not go from broker_2 to broker_3: the destination drains."),
        ("done", "arrived", "bob has moved from broker_2 to broker_3 (drain broker_2: fewest users)."),
    ],
)
def test_a_move_is_a_sentence(script: Script, state: str, outcome: str, sentence: str) -> None:
    assert said(script, "move", MOVE | {"state": state, "outcome": outcome}) == sentence


def test_a_move_says_what_was_foreseen_of_it(script: Script) -> None:
    loads = {"source_before": 900.0, "source_after": 600.0, "target_before": 100.0, "target_after": 400.0}
    told = said(script, "move", MOVE | {"state": "done", "outcome": "", "expected": loads})
    assert told.endswith("Foreseen: broker_2 from 900 B/s to 600 B/s, broker_3 from 100 B/s to 400 B/s.")


def test_before_policies_are_switched_it_is_said_which(script: Script) -> None:
    changes = [
        {"field": "placement", "from": "nearest", "to": "random"},
        {"field": "shuffle", "from": "gsh", "to": "(none)"},
    ]
    assert said(script, "switching", changes) == (
        "Newcomers will be placed by random instead of nearest. Everyone will be arranged anew by no policy instead of "
        "gsh. That holds at once, for the whole system."
    )


@pytest.mark.parametrize(
    ("states", "is_ready", "is_away"),
    [
        pytest.param(["running", "paused"], True, False, id="it answers"),
        pytest.param(["running"], False, False, id="it answers that it is not ready"),
        pytest.param(["unknown"], True, True, id="channels are not told"),
        pytest.param([], True, False, id="there is no channel"),
        pytest.param([], False, True, id="nothing was ever told"),
    ],
)
def test_it_is_known_whether_the_cluster_is_away(
    script: Script, states: list[str], is_ready: bool, is_away: bool
) -> None:
    assert said(script, "isAway", [{"state": state} for state in states], {"is_ready": is_ready}) is is_away


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"kind": "drain", "cause": "drain broker_3", "states": {}}, "Plan p2 (drain broker_3): no moves."),
        ({"kind": "balance", "cause": "why", "states": {"done": 1}}, "Plan p2 (balance: why): 1 move, 1 done."),
    ],
)
def test_a_plan_says_nothing_twice(script: Script, plan: dict[str, Any], sentence: str) -> None:
    assert said(script, "plan", {"id": "p2"} | plan) == sentence


@pytest.mark.parametrize(
    ("migrate", "sentence"),
    [
        ({"name": "ldm"}, "Nothing was decided yet. The coordinator looks every 30 s."),
        (None, "Nothing was decided yet, and balancing is off: neither policy is chosen."),
    ],
)
def test_before_the_first_decision_it_says_when_there_will_be_one(script: Script, migrate: Any, sentence: str) -> None:
    policies = {"balancing": {"migrate": migrate, "shuffle": None}, "balance_every_s": 30.0}
    assert said(script, "undecided", policies) == sentence


def test_what_a_replay_makes_up_is_told_as_that(script: Script) -> None:
    told = said(script, "decision", {"at": 1, "action": "made up", "reason": "everyone is spread evenly"})
    assert told == "Made up for the replay: everyone is spread evenly."


@pytest.mark.parametrize(
    ("users", "pinned", "sentence"),
    [
        (1, 0, "1 person with 1 stream at 2 brokers. As of 00:00:00."),
        (3, 1, "3 people with 1 stream at 2 brokers; 1 of them stays in place for now. As of 00:00:00."),
    ],
)
def test_one_is_not_many(script: Script, users: int, pinned: int, sentence: str) -> None:
    given = {"users": users, "streams": 1, "brokers": 2, "pinned": pinned}
    assert re.sub(r"\d\d:\d\d:\d\d", "00:00:00", said(script, "compared", given, 0)) == sentence


@pytest.mark.parametrize(
    ("covs", "total", "best"),
    [([0.3, 0.1, 0.2], 5, 0.1), ([0.1, 0.1], 5, None), ([0, 0], 0, None)],
    ids=["one is best", "all are equal", "no load"],
)
def test_the_most_even_is_pointed_out_where_there_is_one(
    script: Script, covs: list[float], total: int, best: float | None
) -> None:
    assert said(script, "mostEven", [{"after": {"cov": cov, "total": total}} for cov in covs]) == best


ALERTS = """
    import { showAlerts } from "./alerts.js";
    const texts = (made) => made.children.map((one) => (typeof one === "object" ? texts(one) : one)).join("");
    globalThis.document = { createElement: () => ({
      children: [],
      setAttribute() {},
      append(...all) { this.children.push(...all); },
      get textContent() { return texts(this); },
    }) };
    let old = null;
    let shown = [];
    const list = {
      dataset: {},
      classList: { toggle: (name, isSet) => (old = isSet) },
      replaceChildren: (...all) => (shown = all.map(texts)),
    };
    const sample = { at: 45_296, alerts: [], problems: [] };
"""


def test_calm_is_told_as_old_once_the_connection_is_lost(script: Script) -> None:
    found = script(f"""{ALERTS}
        showAlerts(list, sample);
        const before = [old, shown];
        showAlerts(list, sample, {{ isLost: true }});
        const found = [before, [old, shown]];
    """)
    assert found[0] == [False, ["Everything is within its budgets: lag, balance, loss."]]
    is_old, (lost, calm) = found[1]
    assert is_old
    assert lost.endswith(":56.")
    assert calm == "Everything was within its budgets: lag, balance, loss."


def test_a_recording_is_never_within_budgets(script: Script) -> None:
    found = script(f"{ALERTS} showAlerts(list, sample, {{ isPlayed: true }}); const found = shown;")
    assert len(found) == 1
    assert "made up" in found[0]
