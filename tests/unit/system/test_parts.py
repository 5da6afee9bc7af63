"""Which programs make a system, and what they are told."""

import socket
from pathlib import Path

import pytest

from tocsin.errors import Unavailable
from tocsin.system.backoff import Backoff
from tocsin.system.parts import Addresses, broker_names, parts_of
from tocsin.system.ports import free_port, free_ports

HERE = Addresses(1, 2, {"broker_1": 3, "broker_2": 4})


def test_parts_start_with_the_cluster_and_end_with_the_brokers():
    parts = parts_of(Path("/data"), HERE)
    assert [(part.stage, part.name) for part in parts] == [
        (0, "cluster"),
        (1, "coordinator"),
        (2, "broker_1"),
        (2, "broker_2"),
    ]
    assert [part.url for part in parts] == [f"http://127.0.0.1:{port}" for port in (1, 2, 3, 4)]


def test_all_parts_share_a_data_directory_and_brokers_know_the_others():
    parts = parts_of(Path("/data"), HERE, {"log.level": "warning"})
    assert {part.settings["cluster.data_dir"] for part in parts} == {"/data"}
    assert {part.settings["log.level"] for part in parts} == {"warning"}
    broker = parts[-1]
    assert broker.settings["broker.name"] == "broker_2"
    assert broker.settings["broker.port"] == "4"
    assert broker.settings["broker.cluster"] == "http://127.0.0.1:1"
    assert broker.settings["broker.coordinator"] == "http://127.0.0.1:2"


def test_settings_for_all_do_not_move_anybody():
    parts = parts_of(Path("/data"), HERE, {"broker.port": "0", "cluster.port": "0", "broker.name": "mine"})
    assert [parts[0].settings["cluster.port"], *(part.settings["broker.port"] for part in parts[2:])] == ["1", "3", "4"]
    assert [part.settings["broker.name"] for part in parts[2:]] == ["broker_1", "broker_2"]


def test_a_command_names_the_program_the_file_and_every_setting():
    command = parts_of(Path("/data"), HERE)[1].command(Path("my.toml"), ("tocsin",))
    assert command[:3] == ["tocsin", "coordinator", "--config=my.toml"]
    assert "--set=coordinator.port=2" in command


def test_addresses_of_version_six_have_brackets():
    assert Addresses(1, 2, {}, "::1").cluster_url == "http://[::1]:1"


def test_whoever_has_a_host_of_its_own_binds_it_and_is_looked_for_there():
    hosts = {"coordinator": "127.0.0.2", "broker": "127.0.0.3", "dashboard": "127.0.0.4"}
    addresses = Addresses(1, 2, {"broker_1": 3}, "127.0.0.1", dashboard=4, hosts=hosts)
    cluster, coordinator, broker, dashboard = parts_of(Path("/data"), addresses)
    assert [part.url for part in (cluster, coordinator, broker, dashboard)] == [
        "http://127.0.0.1:1",
        "http://127.0.0.2:2",
        "http://127.0.0.3:3",
        "http://127.0.0.4:4",
    ]
    assert {name: value for name, value in coordinator.settings.items() if name.endswith(".host")} == {
        "coordinator.host": "127.0.0.2"
    }
    assert broker.settings["broker.host"] == "127.0.0.3"
    assert dashboard.settings["dashboard.coordinator"] == broker.settings["broker.coordinator"] == coordinator.url


def test_with_tls_everybody_is_told_https_addresses():
    _, coordinator, broker = parts_of(Path("/data"), Addresses(1, 2, {"broker_1": 3}, scheme="https"))
    assert coordinator.settings["coordinator.cluster"] == "https://127.0.0.1:1"
    assert (broker.url, broker.settings["broker.coordinator"]) == ("https://127.0.0.1:3", "https://127.0.0.1:2")


def test_brokers_are_numbered_from_one():
    assert broker_names(2) == ["broker_1", "broker_2"]


def test_a_wished_port_is_given_where_it_is_free_and_never_twice():
    wished = free_port()
    first, second = free_ports([wished, wished])
    assert first == wished
    assert second != wished


def test_a_port_that_is_needed_is_given_before_one_that_is_only_wished():
    wished = free_port()
    first, second = free_ports([wished, wished], needed=[False, True])
    assert first != wished
    assert second == wished


def test_a_port_that_is_needed_and_taken_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Unavailable, match=f"cannot listen at 127.0.0.1, port {port}: Address already in use"):
            free_ports([0, port], needed=[False, True])


@pytest.mark.parametrize("host", ["\u00e9..", "192.0.2.1"], ids=["is no name", "is none of ours"])
def test_a_host_at_which_nobody_can_listen_is_refused(host):
    with pytest.raises(Unavailable, match="cannot listen at"):
        free_ports([0], host)


@pytest.mark.parametrize(
    ("lives_s", "pauses_s"),
    [
        pytest.param([0, 0, 0], [1, 2, 4], id="doubles at each short life"),
        pytest.param([0, 0, 100, 0], [1, 2, 1, 2], id="a long life makes the next pause short"),
        pytest.param([0] * 8, [1, 2, 4, 8, 16, 30, 30, 30], id="has a bound"),
    ],
)
def test_pauses_before_a_restart(lives_s, pauses_s):
    backoff = Backoff()
    assert [backoff.pause_s("broker_1", lived) for lived in lives_s] == pauses_s


def test_each_part_has_pauses_of_its_own():
    backoff = Backoff()
    backoff.pause_s("a", 0)
    assert backoff.pause_s("b", 0) == 1
