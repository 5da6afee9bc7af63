"""``tocsin demo`` before it starts anything, and the requests that it needs of the client."""

import pytest

from tocsin.cli.http import ClusterClient, ClusterProblem
from tocsin.errors import BadArgument, Unavailable


@pytest.mark.parametrize(
    ("option", "value"), [("--seconds", "0"), ("--people", "0"), ("--subscriptions", "-1")], ids=str.strip
)
def test_a_number_that_makes_no_sense_is_refused_before_anything_starts(run, tmp_path, option, value):
    result = run("demo", option, value)
    assert isinstance(result.exception, BadArgument)
    assert option in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_somebody_else_is_left_alone(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").touch()
    result = run("demo", "--dir", "home")
    assert isinstance(result.exception, Unavailable)
    assert "thesis.tex" in str(result.exception)
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.tex"]


def test_help_names_the_options(run):
    shown = run("demo", "--help").stdout
    assert all(option in shown for option in ("--seconds", "--people", "--subscriptions", "--keep", "--json"))


def test_an_answer_without_content_is_nothing(cluster):
    cluster.on("POST", "/brokers/demo/ack", b"", status=204)
    with ClusterClient(cluster.url, None) as client:
        assert client.post("/brokers/demo/ack", {"positions": {}}) is None
    assert cluster.requests[0].body == b'{"positions":{}}'


def test_text_comes_as_it_is_and_problems_as_problems(cluster):
    cluster.on("GET", "/metrics", b"tocsin_results_total 3\n")
    with ClusterClient(cluster.url, None) as client:
        assert client.text("/metrics") == "tocsin_results_total 3\n"
        with pytest.raises(ClusterProblem, match="nothing at '/elsewhere'"):
            client.text("/elsewhere")
