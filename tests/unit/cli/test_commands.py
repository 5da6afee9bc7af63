import gzip
import json

import pytest

from tocsin import __version__
from tocsin.config import Config
from tocsin.errors import BadArgument, ConfigError, Unavailable
from tocsin.settings.describe import as_markdown
from tocsin.tokens import NAMED_ACTIONS, PLAIN_ACTIONS, ensure_secret, read_secret, verify

TABLE = {"kind": "table", "message": "", "columns": ["name", "n"], "rows": [["Fires", 3], [None, 4]], "truncated": True}
DATASET = {"name": "Reports", "columns": [{"name": "id", "type": "BIGINT"}, {"name": "x", "type": "DOUBLE"}]}
RECEIPT = {"accepted": 2, "rejected": 1, "duplicate": False, "problems": [{"line": 2, "reason": "x: expected DOUBLE"}]}


def test_version_is_told_as_text_and_json(run):
    assert f"tocsin {__version__}" in run("version").output
    assert json.loads(run("version", "--json").output)["tocsin"] == __version__
    assert run("--version").output == f"tocsin {__version__}\n"


@pytest.mark.parametrize(
    "command", ["cluster", "sql", "load", "token", "status", "doctor", "version", "config", "channel", "rebalance"]
)
def test_every_command_explains_itself(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage" in result.output
    assert "bool" not in result.output


def test_without_a_command_the_commands_are_listed(run):
    assert "cluster" in run().output


def test_config_show_prints_what_holds_and_its_source(run, tmp_path):
    (tmp_path / "tocsin.toml").write_text("[cluster]\nport = 9\n")
    result = run("config", "show", "--set", "log.level=debug")
    assert "port = 9  # tocsin.toml" in result.output
    assert 'level = "debug"  # command line' in result.output


def test_config_show_gives_json(run):
    assert json.loads(run("config", "show", "--json").output)["settings"]["cluster"]["port"] == 8420


def test_config_check_tells_every_problem(run, tmp_path):
    (tmp_path / "other.toml").write_text("[cluster]\nprot = 9\n[lgo]\nlevel = 'info'\n")
    result = run("config", "check", "--config", "other.toml")
    assert isinstance(result.exception, ConfigError)
    assert len(result.exception.problems) == 2


def test_config_check_is_content_with_a_right_file(run, tmp_path):
    (tmp_path / "tocsin.toml").write_text("[cluster]\nport = 9\n")
    assert "1 setting given" in run("config", "check").stderr


def test_config_docs_prints_the_reference(run):
    assert run("config", "docs").output == as_markdown(Config)


@pytest.mark.parametrize("text", ["cluster.port", "=", ""])
def test_a_malformed_override_is_told(run, text):
    assert isinstance(run("config", "show", "--set", text).exception, ConfigError)


def test_the_help_of_token_names_every_capability(run):
    shown = run("token", "--help").output
    assert all(f"{action}:NAME" in shown for action in NAMED_ACTIONS)
    assert all(action in shown for action in PLAIN_ACTIONS)


def test_a_token_is_made_with_capabilities_pins_and_claims(run, tmp_path):
    secret = ensure_secret(tmp_path / "d" / "secret")
    arguments = ["--can", "read", "--pin", "NearMe:user=sub,team=team", "--claim", "team=7", "--ttl", "5m"]
    result = run("token", "ann", *arguments, "--data-dir", "d")
    who = verify(result.output.strip(), secret)
    assert (who.subject, who.may("read"), who.pins("NearMe")) == ("ann", True, [{"user": "ann", "team": 7}])


def test_no_token_is_made_where_no_cluster_has_been(run, tmp_path):
    refused = run("token", "ann", "--can", "read").exception
    assert isinstance(refused, Unavailable)
    assert "--data-dir" in str(refused)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param([], "at least one capability", id="nothing granted"),
        pytest.param(["--can", "fly"], "one of admin, read", id="an unknown capability"),
        pytest.param(["--pin", "NearMe"], "CHANNEL:PARAMETER=CLAIM", id="a pin without a parameter"),
        pytest.param(["--can", "read", "--claim", "team"], "NAME=VALUE", id="a claim without a value"),
        pytest.param(["--can", "read", "--ttl", "5"], "a duration such as", id="a time without a unit"),
    ],
)
def test_a_token_that_cannot_be_made_says_what_was_expected(run, tmp_path, arguments, problem):
    ensure_secret(tmp_path / ".tocsin" / "secret")
    assert problem in str(run("token", "ann", *arguments).exception)


def test_sql_prints_tables(run, cluster):
    cluster.on("POST", "/statements", {"results": [TABLE, {"kind": "done", "message": "Channel [bold]x[/bold] made."}]})
    result = run("sql", "-c", "SHOW CHANNELS", "--url", cluster.url)
    assert "Fires" in result.stdout
    assert "NULL" in result.stdout
    assert "Channel [bold]x[/bold] made." in result.stdout
    assert "There are more rows" in result.stderr


def test_sql_prints_json(run, cluster):
    cluster.on("POST", "/statements", {"results": [TABLE]})
    assert json.loads(run("sql", "-c", "SELECT 1", "--json", "--url", cluster.url).stdout) == [TABLE]


def test_sql_runs_a_file_and_a_pipe(run, cluster, tmp_path):
    cluster.on("POST", "/statements", {"results": []})
    (tmp_path / "a.sql").write_text("SHOW é;")
    run("sql", "a.sql", "--url", cluster.url)
    run("sql", "--url", cluster.url, stdin="SHOW FEEDS;")
    assert [json.loads(r.body)["text"] for r in cluster.requests] == ["SHOW é;", "SHOW FEEDS;"]


def test_sql_names_the_file_in_which_a_statement_failed(run, cluster, tmp_path):
    cluster.on("POST", "/statements", {"detail": "line 2, column 1: no"}, status=400)
    (tmp_path / "a.sql").write_text("x")
    assert str(run("sql", "a.sql", "--url", cluster.url).exception) == "a.sql: line 2, column 1: no"


def test_sql_prints_the_answers_before_a_failure_and_says_where_it_was(run, cluster, tmp_path):
    script = "SHOW DATASETS;\n  DROP DATASET b; SHOW FEEDS"
    (tmp_path / "a.sql").write_text(script)
    for _ in range(2):
        cluster.on("POST", "/statements", {"results": [TABLE]})
        cluster.on("POST", "/statements", {"detail": "there is no dataset 'b'"}, status=404)
    shown, listed = run("sql", "a.sql", "--url", cluster.url), run("sql", "a.sql", "--json", "--url", cluster.url)
    assert "Fires" in shown.stdout
    assert str(shown.exception) == "a.sql: line 2, column 3: there is no dataset 'b'"
    assert json.loads(listed.stdout) == [TABLE]
    sent = [json.loads(r.body)["text"] for r in cluster.requests]
    assert sent == ["SHOW DATASETS;\n  ", "\n  DROP DATASET b; "] * 2


@pytest.mark.parametrize("arguments", [["none.sql"], ["a.sql", "-c", "SHOW FEEDS"]])
def test_sql_refuses_what_it_cannot_read(run, cluster, arguments):
    assert isinstance(run("sql", *arguments, "--url", cluster.url).exception, BadArgument)


def test_control_characters_from_a_record_cannot_act_on_the_terminal(run, cluster):
    evil = {"kind": "table", "message": "", "columns": ["a"], "rows": [["\x1b[2J\x07x"]], "truncated": False}
    cluster.on("POST", "/statements", {"results": [evil]})
    output = run("sql", "-c", "SELECT 1", "--url", cluster.url).stdout
    assert "\\x1b[2J\\x07x" in output
    assert "\x1b" not in output


def test_load_sends_batches_under_one_run_and_adds_up_the_receipts(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", RECEIPT)
    (tmp_path / "a.csv").write_text("id,x\n1,1.5\n2,zwei\n3,3\n4,4\n")
    result = run("load", "Reports", "a.csv", "--batch-size", "20 B", "--run", "r", "--json", "--url", cluster.url)
    sent = [r for r in cluster.requests if r.method == "POST"]
    assert [r.headers["Idempotency-Key"] for r in sent] == ["r-0", "r-1"]
    assert [r.body for r in sent] == [b"id,x\n1,1.5\n2,zwei\n", b"id,x\n3,3\n4,4\n"]
    assert {r.headers["Content-Type"] for r in sent} == {"text/csv"}
    totals = json.loads(result.stdout)
    assert (totals["batches"], totals["accepted"], totals["rejected"]) == (2, 4, 2)
    assert [p["line"] for p in totals["problems"]] == [2, 4]


def test_load_tells_where_rejected_records_are(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", RECEIPT)
    (tmp_path / "a.jsonl").write_text("{}\n")
    result = run("load", "Reports", "a.jsonl", "--url", cluster.url)
    assert "loaded 2 records into Reports, 1 rejected" in result.stderr
    assert "SHOW DEAD LETTERS OF Reports" in result.stderr
    assert result.exit_code == 1


def test_a_load_that_stops_says_how_to_go_on(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", {"detail": "the disk is full"}, status=507)
    (tmp_path / "a.jsonl").write_text("{}\n")
    told = str(run("load", "Reports", "a.jsonl", "--run", "r7", "--url", cluster.url).exception)
    assert "the disk is full" in told
    assert "--run r7" in told


def test_a_load_without_a_name_tells_the_one_it_made_up_when_it_stops(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", RECEIPT)
    cluster.on("POST", "/datasets/Reports/records", {"detail": "the disk is full"}, status=507)
    (tmp_path / "a b.csv").write_text("id,x\n1,1\n2,2\n")
    told = str(run("load", "Reports", "a b.csv", "--batch-size", "9 B", "--url", cluster.url).exception)
    made_up = cluster.requests[-1].headers["Idempotency-Key"].partition("-")[0]
    assert "stopped after 2 records" in told
    assert told.endswith(f"tocsin load Reports 'a b.csv' --format csv --batch-size '9 B' --run {made_up}")


def test_a_file_that_cannot_be_read_to_its_end_says_how_to_go_on(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", RECEIPT)
    content = gzip.compress(b"".join(b'{"id": %d}\n' % n for n in range(50_000)))
    (tmp_path / "a.jsonl.gz").write_bytes(content[:-20])
    told = str(run("load", "Reports", "a.jsonl.gz", "--batch-size", "100 kB", "--url", cluster.url).exception)
    assert "a whole gzip file" in told
    assert "to go on" in told


def test_a_first_batch_that_is_refused_for_good_has_no_way_to_go_on(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    cluster.on("POST", "/datasets/Reports/records", {"detail": "the header"}, status=422)
    (tmp_path / "a.csv").write_text("idd\n1\n")
    assert str(run("load", "Reports", "a.csv", "--url", cluster.url).exception) == "the header"


def test_a_file_without_records_is_told(run, cluster, tmp_path):
    cluster.on("GET", "/datasets/Reports", DATASET)
    (tmp_path / "a.csv").write_text("")
    assert "a.csv holds no records" in run("load", "Reports", "a.csv", "--url", cluster.url).stderr


def test_status_shows_totals_and_fails_while_not_ready(run, cluster):
    cluster.on("GET", "/status", {"ready": True, "reason": "", "totals": {"records": 5}})
    cluster.on("GET", "/status", {"ready": False, "reason": "Spark starts"})
    result = run("status", "--url", cluster.url)
    assert (result.exit_code, "totals.records" in result.stdout) == (0, True)
    result = run("status", "--url", cluster.url)
    assert (result.exit_code, "Spark starts" in result.stdout) == (1, True)


def test_a_channel_is_explained(run, cluster):
    explanation = {"strategy": "index", "sql": "SELECT *\nFROM x", "executions": [{"matched": 7}], "empty": []}
    cluster.on("GET", "/channels/Near%20Me/explain", {"channel": "Near Me", "explanation": explanation})
    shown = run("channel", "explain", "Near Me", "--url", cluster.url).stdout
    assert all(part in shown for part in ("strategy: index", "FROM x", "matched", "7", "empty: []"))


def test_the_secret_of_a_named_data_directory_opens_its_cluster(run, cluster, tmp_path):
    ensure_secret(tmp_path / "d" / "secret")
    cluster.on("GET", "/status", {"ready": True})
    run("status", "--url", cluster.url, "--data-dir", "d")
    token = cluster.requests[0].headers["Authorization"].removeprefix("Bearer ")
    assert verify(token, read_secret(tmp_path / "d" / "secret")).may("admin")


def test_nobody_there_is_an_error_of_ours(run):
    assert isinstance(run("status", "--url", "http://127.0.0.1:1").exception, Unavailable)


def test_no_statement_is_blamed_where_nobody_answers(run):
    assert str(run("sql", "-c", "SHOW FEEDS; SHOW FEEDS", "--url", "http://127.0.0.1:1").exception).startswith("no clu")


def test_doctor_reports_each_part(run):
    found = json.loads(run("doctor", "--json", "--set", "cluster.port=0").stdout)
    assert [f["what"] for f in found] == ["Python", "packages", "Java", "data directory", "secret", "disk", "port"]


def test_doctor_finds_a_data_directory_that_is_a_file(run, tmp_path):
    (tmp_path / "d").write_text("")
    result = run("doctor", "--json", "--data-dir", "d", "--set", "cluster.port=0")
    states = {f["what"]: f["state"] for f in json.loads(result.stdout)}
    assert (states["data directory"], result.exit_code) == ("problem", 1)


def test_doctor_tells_a_cluster_from_a_stranger_on_the_port(run, cluster):
    port = cluster.url.rsplit(":", 1)[1]
    stranger = json.loads(run("doctor", "--json", "--set", f"cluster.port={port}").stdout)[-1]
    cluster.on("GET", "/version", {"name": "tocsin", "version": "9.9"})
    known = json.loads(run("doctor", "--json", "--set", f"cluster.port={port}").stdout)[-1]
    assert (stranger["state"], known["state"]) == ("problem", "warning")
    assert "in use: tocsin 9.9" in known["finding"]


def test_a_second_cluster_on_a_port_is_told_who_is_there(run, cluster):
    port = cluster.url.rpartition(":")[2]
    stranger = run("cluster", "--port", port)
    cluster.on("GET", "/version", {"name": "tocsin", "version": "9.9"})
    known = run("cluster", "--port", port)
    assert (stranger.exit_code, known.exit_code) == (1, 1)
    assert "choose another port with --port" in str(stranger.exception)
    assert "tocsin 9.9 runs there already; choose another port with --port" in str(known.exception)


@pytest.mark.parametrize(
    "arguments", [["--insecure", "--host", "0.0.0.0"], ["--port", "70000"], ["--log-level", "loud"]]
)
def test_a_cluster_with_bad_settings_does_not_start(run, arguments):
    assert isinstance(run("cluster", *arguments).exception, ConfigError)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["sql", "none.sql"],
            "FILE: expected a file of statements in UTF-8, got 'none.sql' (No such file or directory)",
        ),
        (["sql", "-c", "SHOW FEEDS", "--url", "foo"], "--url: expected a URL such as http://127.0.0.1:8420, got 'foo'"),
        (["token", "b1"], "--can: expected at least one capability, such as --can broker:b1, or --pin"),
    ],
)
def test_errors_say_what_is_wrong_once(run, arguments, told):
    assert str(run(*arguments).exception) == told


def test_an_error_of_a_command_has_no_file_in_front(run, cluster):
    cluster.on("POST", "/statements", {"detail": "line 1, column 1: no"}, status=400)
    assert str(run("sql", "-c", "SHOE", "--url", cluster.url).exception) == "line 1, column 1: no"


@pytest.mark.parametrize("command", ["show", "check"])
def test_the_configuration_is_told_for_a_data_directory(run, command):
    assert run("config", command, "--data-dir", "other").exit_code == 0


def test_channels_have_the_columns_of_show_channels(run, cluster):
    cluster.on("GET", "/channels", {"channels": [{"name": "ByKind", "lag_s": 0.25}]})
    listed = run("channel", "list", "--url", cluster.url).stdout
    assert all(word in listed for word in ("channel", "ByKind", "lag_s", "0.25"))


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["dashboard"], "What somebody may do there is decided by that token"),
        (["lab", "run"], "With debs19-live they are measured on a cluster"),
        (["lab", "run"], "[default: (local[*] for a study"),
    ],
)
def test_help_is_wrapped_by_the_terminal_alone(run, command, sentence, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert sentence in run(*command, "--help").stdout
