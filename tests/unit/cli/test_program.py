"""The program as a process: exit codes, standard error, and a base installation without the extras."""

import os
import subprocess
import sys

import pytest

BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyspark", "py4j", "fastapi", "uvicorn", "pyarrow", "numba", "numpy", "pandas",
                                      "sqlglot", "duckdb", "prometheus_client", "starlette", "uvloop"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Block())
sys.argv = ["tocsin", *sys.argv[1:]]
from tocsin.cli.main import main
main()
"""


def tocsin(*arguments, blocked=False, stdin=""):
    program = ["-c", BLOCK] if blocked else ["-m", "tocsin.cli.main"]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TOCSIN_")}
    return subprocess.run(
        [sys.executable, *program, *arguments], capture_output=True, text=True, input=stdin, env=environ, timeout=60
    )


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        pytest.param(["version"], 0, "", id="done is 0"),
        pytest.param(["config", "show", "--set", "cluster.prot=1"], 1, "did you mean 'cluster.port'?", id="ours is 1"),
        pytest.param(["status", "--url", "http://127.0.0.1:1"], 1, "no cluster answers", id="nobody there is 1"),
        pytest.param(
            ["token", "ann", "--can", "read", "--data-dir", "none"], 1, "no secret at none/secret", id="no token"
        ),
        pytest.param(["status", "--set=http.ca_file=c.pem"], 1, "http.ca_file: no certificates", id="no authorities"),
        pytest.param(["sql", "--nonsense"], 2, "No such option", id="usage is 2"),
    ],
)
def test_exit_codes(arguments, code, told):
    result = tocsin(*arguments)
    assert (result.returncode, told in result.stderr, "Traceback" in result.stderr) == (code, True, False)


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["config", "show"], ["doctor", "--help"]])
def test_a_base_installation_has_the_command_line(arguments):
    assert tocsin(*arguments, blocked=True).returncode == 0


def test_parquet_without_its_extra_says_how_to_get_it(cluster, tmp_path):
    cluster.on("GET", "/datasets/R", {"name": "R", "columns": []})
    (tmp_path / "a.parquet").write_bytes(b"")
    result = tocsin("load", "R", "a.parquet", "--url", cluster.url, blocked=True)
    assert (result.returncode, "pip install 'tocsin[cluster]'" in result.stderr) == (1, True)


def test_a_cluster_without_its_extra_says_how_to_get_it():
    result = tocsin("cluster", "--set=cluster.port=0", blocked=True)
    assert (result.returncode, "pip install 'tocsin[cluster]'" in result.stderr) == (1, True)


def test_a_reader_that_leaves_early_is_no_error_worth_a_traceback():
    command = f"{sys.executable} -m tocsin.cli.main config docs | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert "Traceback" not in done.stderr


def test_every_problem_of_the_settings_is_a_line_of_its_own():
    told = tocsin("config", "check", "--set", "cluster.prot=1", "--set", "http.foo=2").stderr.splitlines()
    assert [line.startswith("tocsin: command line: unknown key") for line in told] == [True, True]
