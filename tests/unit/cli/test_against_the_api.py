"""The command line against the real HTTP interface, over a cluster of dictionaries."""

import json
from functools import partial

import pytest

from support.memory_cluster import MemoryCluster
from tocsin.cli.http import ClusterProblem
from tocsin.datacluster.api import create_app
from tocsin.tokens import ensure_secret, mint, verify
from tocsin.web.server import ApiServer, ServerOptions


@pytest.fixture
def service():
    return MemoryCluster()


@pytest.fixture
def api(service, tmp_path):
    secret = ensure_secret(tmp_path / ".tocsin" / "secret")
    server = ApiServer(create_app(service, verify=partial(verify, secret=secret)), ServerOptions(port=0))
    server.start()
    yield server.url
    server.stop()


def test_the_local_secret_opens_the_cluster(run, api):
    result = run("sql", "-c", "SHOW DATASETS", "--url", api)
    assert (result.exit_code, "Reports" in result.stdout) == (0, True)


def test_a_token_that_may_not_is_refused_with_the_reason(run, api, tmp_path):
    token = mint(ensure_secret(tmp_path / ".tocsin" / "secret"), "ann", ["ingest:Other"], 60)
    (tmp_path / "a.jsonl").write_text('{"id": "1", "kind": "fire", "text": "x"}\n')
    refused = run("channel", "list", "--url", api, "--token", token).exception
    assert isinstance(refused, ClusterProblem)
    assert refused.status == 403


def test_a_wrong_token_is_told_without_repeating_it(run, api):
    refused = run("sql", "-c", "SHOW DATASETS", "--url", api, "--token", "aa.bb.cc").exception
    assert (refused.status, "aa.bb.cc" in str(refused)) == (401, False)
    assert all(way in str(refused) for way in ("--token", "--data-dir", "TOCSIN_TOKEN"))


def test_a_syntax_error_points_at_its_place(run, api):
    assert "line 1, column 1" in str(run("sql", "-c", "SHOE DATASETS", "--url", api).exception)


def test_a_load_repeated_under_its_name_stores_nothing_twice(run, api, service, tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(f'{{"id": "{n}", "kind": "fire", "text": "x"}}\n' for n in range(9)))
    arguments = ["load", "Reports", "a.jsonl", "--batch-size", "100 B", "--run", "r", "--json", "--url", api]
    first, second = (json.loads(run(*arguments).stdout) for _ in range(2))
    assert (first["accepted"], first["duplicate_batches"]) == (9, 0)
    assert (second["accepted"], second["duplicate_batches"]) == (9, second["batches"])
    assert len(service.records) == 9


def test_loading_what_does_not_exist_names_it(run, api, tmp_path):
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert "did you mean 'Reports'" in str(run("load", "Report", "a.jsonl", "--url", api).exception)


def test_channels_are_listed_and_explained(run, api):
    assert "ByKind" in run("channel", "list", "--url", api).stdout
    assert run("channel", "explain", "ByKind", "--url", api).exit_code == 0
    assert json.loads(run("channel", "list", "--json", "--url", api).stdout)[0]["name"] == "ByKind"


def test_status_follows_readiness(run, api, service):
    assert run("status", "--url", api).exit_code == 0
    service.ready, service.reason = False, "Spark starts"
    assert run("status", "--url", api).exit_code == 1


def test_load_in_a_script_reads_the_users_file(run, api, service, tmp_path):
    (tmp_path / "mine.csv").write_text("id,kind,text\n1,fire,a\n2,flood,b\n")
    result = run("sql", "-c", "SHOW DATASETS; LOAD DATASET Reports FROM 'mine.csv'; SHOW DATASETS", "--url", api)
    assert (result.exit_code, "loaded 2 records into Reports" in result.output) == (0, True)
    assert len(service.records) == 2


def test_csv_rows_that_do_not_fit_their_header_are_told_by_line_and_stop_nothing(run, api, service, tmp_path):
    (tmp_path / "a.csv").write_text("id,kind,text\n1,fire,a\n2,fire\n3,fire,c,d\n4,flood,e\n")
    result = run("load", "Reports", "a.csv", "--url", api)
    assert "line 3: expected 3 fields, as in the header, got 2" in result.stderr
    assert "line 4: expected 3 fields, as in the header, got 4" in result.stderr
    assert [record["id"] for record in service.records] == [1, 4]


@pytest.mark.parametrize(
    ("header", "told"),
    [("idd,kind", "no column 'idd'; did you mean 'id'?"), ("id;kind", "'id;kind'"), ("kind", "lacks column 'id'")],
)
def test_a_wrong_header_is_one_error_before_anything_is_loaded(run, api, service, tmp_path, header, told):
    (tmp_path / "a.csv").write_text(f"{header}\n1,fire\n2,fire\n")
    assert told in str(run("load", "Reports", "a.csv", "--url", api).exception)
    assert service.records == []
