from __future__ import annotations

from pathlib import Path

import pytest

from tocsin.datacluster.spark.settings import SparkOptions, cores_of, settings


def of(**options: object) -> dict[str, str]:
    return settings(SparkOptions(**options), Path("/logs"), Path("/log4j"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        pytest.param("local", 1, id="local is one core"),
        pytest.param("local[3]", 3, id="as many as it says"),
        pytest.param("local[3, 2]", 3, id="retries do not count"),
        pytest.param("local[*]", 8, id="a star is all there are"),
        pytest.param("spark://h:7077", None, id="a cluster's size is not known yet"),
    ],
)
def test_cores_of_a_master(master: str, cores: int | None) -> None:
    assert cores_of(master, available=8) == cores


def test_the_users_setting_wins() -> None:
    assert of(conf={"spark.sql.ansi.enabled": "true"})["spark.sql.ansi.enabled"] == "true"


def test_shuffles_have_as_many_partitions_as_there_are_cores() -> None:
    assert of(master="local[3]")["spark.sql.shuffle.partitions"] == "3"


@pytest.mark.parametrize(
    ("master", "bound"),
    [
        pytest.param("local[2]", True, id="one process"),
        pytest.param("spark://127.0.0.1:7077", True, id="a cluster on this machine"),
        pytest.param("spark://node1:7077", False, id="a cluster elsewhere must reach the driver"),
        pytest.param("yarn", False, id="YARN"),
    ],
)
def test_the_driver_listens_on_loopback_only_where_that_suffices(master: str, bound: bool) -> None:
    assert ("spark.driver.bindAddress" in of(master=master)) is bound


def test_jars_are_given_as_addresses(tmp_path: Path) -> None:
    jar = tmp_path / "a b.jar"
    assert of(jars=(jar,))["spark.jars"] == jar.resolve().as_uri()
    assert "spark.jars" not in of()
