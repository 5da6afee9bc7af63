from __future__ import annotations

import pytest
from worlds import READY, broker, channel

from tocsin.dashboard.alerts import Budgets, Watch, exceeded
from tocsin.dashboard.samples import ClusterSample, Figures

BUDGETS = Budgets(lag_s=30.0, cov=0.5, cov_load=1000.0, lost=2)


@pytest.mark.parametrize(
    ("brokers", "figures", "channels", "cluster", "expected"),
    [
        pytest.param([broker()], Figures(), [channel()], READY, [], id="all is well"),
        pytest.param([], Figures(), [channel("Late", lag_s=31.0)], READY, ["lag Late"], id="a channel is behind"),
        pytest.param([], Figures(), [channel(state="unknown", lag_s=None)], READY, [], id="nobody tells"),
        pytest.param(
            [], Figures(), [channel("Bad", state="failing", problem="x")], READY, ["channel Bad"], id="a channel fails"
        ),
        pytest.param([], Figures(), [channel("Waits", problem="for another")], READY, [], id="a channel waits"),
        pytest.param([], Figures(cov=0.6, mean=2000.0), [], READY, ["cov"], id="uneven"),
        pytest.param([], Figures(cov=0.6, mean=20.0), [], READY, [], id="uneven, but next to nothing"),
        pytest.param([broker("b", lost=3)], Figures(), [], READY, ["loss b"], id="too much was lost"),
        pytest.param([], Figures(), [channel("Holed", lost=3)], READY, ["loss Holed"], id="results were lost"),
        pytest.param([broker("b", state="dead")], Figures(), [], READY, ["broker b"], id="a broker died"),
        pytest.param([], Figures(), [], ClusterSample(False, "starting"), ["cluster"], id="no cluster"),
    ],
)
def test_what_exceeds_its_budget(brokers, figures, channels, cluster, expected) -> None:
    assert [alert.id for alert in exceeded(BUDGETS, brokers, figures, channels, cluster)] == expected


@pytest.mark.parametrize(
    ("brokers", "channels", "sentence"),
    [
        ([broker("b", lost=3000)], [], "b told of 3,000 losses in the last minute; the budget is 2."),
        (
            [],
            [channel("Holed", lost=3)],
            "Holed lost 3 results in the last minute, of which brokers are told a gap; the budget is 2.",
        ),
        ([broker("b", state="dead")], [], "b is dead: its people are served elsewhere."),
        (
            [broker("b", state="silent")],
            [],
            "b is silent: it does not report, keeps its people, and gets no newcomers.",
        ),
    ],
)
def test_an_alert_says_what_is_so_and_what_the_budget_is(brokers, channels, sentence) -> None:
    assert [alert.text for alert in exceeded(BUDGETS, brokers, Figures(), channels, READY)] == [sentence]


def test_an_alert_knows_since_when_it_holds() -> None:
    watch, bad = Watch(BUDGETS), [broker("b", state="dead")]
    assert [alert.since for at in (1.0, 2.0) for alert in watch.look(at, bad, Figures(), [], READY)] == [1.0, 1.0]
    assert watch.look(3.0, [], Figures(), [], READY) == []
    assert [alert.since for alert in watch.look(4.0, bad, Figures(), [], READY)] == [4.0]
