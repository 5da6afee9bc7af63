"""The broker over the real HTTP interface of a cluster of dictionaries."""

import pytest

from support.memory_cluster import BROKER, CHANNEL, MemoryCluster
from tocsin.cli.http import ClusterClient, ClusterProblem
from tocsin.datacluster.api import create_app
from tocsin.datacluster.service import Wanted
from tocsin.demo import puller
from tocsin.demo.audience import Audience
from tocsin.demo.puller import Puller
from tocsin.demo.tally import Tally
from tocsin.tokens import LOCAL_ADMIN
from tocsin.web.server import ApiServer, ServerOptions


@pytest.fixture
def service():
    made = MemoryCluster()
    made.subscribe(CHANNEL, BROKER, [Wanted({"kind": "fire"})], LOCAL_ADMIN)
    return made


@pytest.fixture
def client(service):
    server = ApiServer(create_app(service, verify=lambda token: LOCAL_ADMIN, insecure=True), ServerOptions(port=0))
    server.start()
    with ClusterClient(server.url, "any") as link:
        yield link
    server.stop()


def publish(service, *reports):
    for report in reports:
        service.publish("fire", b'{"report_id": "%s"}' % report.encode())


def test_results_are_counted_once_and_acknowledged(client, service):
    broker = Puller(client, Audience(client, [CHANNEL], BROKER), BROKER)
    publish(service, "r1", "r2")
    broker.drain()
    publish(service, "r3")
    broker.drain()
    tally = broker.tallies[CHANNEL]
    assert (tally.rows, tally.matches, tally.doubled) == (3, 3, 0)
    assert {report for report, _ in tally.pairs} == {"r1", "r2", "r3"}
    assert service.acks[CHANNEL] == service.results[-1][1].position


def test_many_results_come_in_several_pages(client, service, monkeypatch):
    monkeypatch.setattr(puller, "MAX_ROWS", 2)
    broker = Puller(client, Audience(client, [CHANNEL], BROKER), BROKER)
    publish(service, *(f"r{n}" for n in range(7)))
    assert broker.pull(0.0), "there was more"
    broker.drain()
    assert broker.tallies[CHANNEL].rows == 7


def test_results_that_are_gone_are_noted(client, service):
    publish(service, "r1", "r2", "r3")
    service.forget_through(service.results[1][1].position)
    broker = Puller(client, Audience(client, [CHANNEL], BROKER), BROKER)
    broker.drain()
    tally = broker.tallies[CHANNEL]
    assert (tally.rows, len(tally.gaps)) == (1, 1)


def test_a_broker_that_nobody_created_is_refused(client):
    with pytest.raises(ClusterProblem, match="elsewhere"):
        Puller(client, Audience(client, [CHANNEL]), "elsewhere").pull(0.0)


def test_after_counting_results_are_acknowledged_and_not_remembered(client, service):
    broker = Puller(client, Audience(client, [CHANNEL], BROKER), BROKER)
    publish(service, "r1")
    broker.drain()
    broker.end_counting()
    publish(service, "r2")
    broker.drain()
    assert broker.tallies[CHANNEL] == Tally()
    assert service.acks[CHANNEL] == service.results[-1][1].position
