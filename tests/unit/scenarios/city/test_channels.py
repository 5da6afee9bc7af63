from __future__ import annotations

import pytest

from tocsin.errors import BadArgument, NotFound
from tocsin.language.parser import parse_script, parse_statement
from tocsin.language.statements import CreateChannel, CreateDataset
from tocsin.scenarios.city import CHANNELS, DATASETS, DEMO, channels


def test_the_datasets_are_statements_of_the_language() -> None:
    created = parse_script(";\n".join(DATASETS))
    assert all(isinstance(statement, CreateDataset) for statement in created)
    assert len(created) == 3


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_a_channel_is_a_statement_that_uses_each_of_its_parameters(channel) -> None:
    assert isinstance(parse_statement(channel.statement()), CreateChannel)
    assert all(f":{name}" in channel.query for name, _ in channel.parameters)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.name)
def test_a_notification_says_when_it_happened(channel) -> None:
    assert "r.at," in channel.query


def test_there_are_seven_with_periods_of_10_20_and_30_seconds() -> None:
    """Paper, section 6.1.2: seven channels of different periods (10, 20 and 30 seconds)."""
    assert len(CHANNELS) == 7
    assert {channel.period_s for channel in CHANNELS} == {10, 20, 30}
    assert all("PERIOD" in channel.statement(periodic=True) for channel in CHANNELS)


@pytest.mark.parametrize(
    ("speed", "shortest", "period"),
    [
        pytest.param(1.0, 1.0, "'10s'", id="as declared at normal speed"),
        pytest.param(4.0, 1.0, "'2500ms'", id="divided by the speed"),
        pytest.param(30.0, 1.0, "'1s'", id="not below the shortest"),
        pytest.param(30.0, 0.1, "'333ms'", id="unless a shorter one is wanted"),
    ],
)
def test_speed_divides_periods(speed: float, shortest: float, period: str) -> None:
    statement = channels("NearPlace")[0].statement(speed, shortest_period_s=shortest)
    assert f"PERIOD {period} AS" in statement


def test_the_demo_has_its_four() -> None:
    assert [channel.name for channel in channels(*DEMO)] == ["ByKind", "NearPlace", "NearMe", "WithShelters"]
    assert channels("ByKind")[0].statement().startswith("CREATE CONTINUOUS CHANNEL ByKind(kind STRING) AS")


def test_an_unknown_channel_is_refused_with_the_nearest() -> None:
    with pytest.raises(NotFound, match="did you mean 'NearMe'"):
        channels("NearMee")


def test_a_speed_is_above_0() -> None:
    with pytest.raises(BadArgument, match="above 0"):
        CHANNELS[1].statement(0)
