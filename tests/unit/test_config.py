import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.config import Config, is_loopback, load, own_url, resolve, url_of
from tocsin.errors import ConfigError
from tocsin.settings.declare import settings_of
from tocsin.settings.describe import as_markdown, as_toml

SETTINGS = {s.path: s for s in settings_of(Config)}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


@pytest.fixture
def written(tmp_path):
    """Writes a file, gives its path."""

    def write(content):
        path = tmp_path / "tocsin.toml"
        path.write_text(content)
        return path

    return write


def problems(*args, **kwargs):
    with pytest.raises(ConfigError) as caught:
        load(*args, **kwargs)
    return list(caught.value.problems)


def test_defaults_hold_where_nothing_is_written():
    assert load() == Config()
    assert (load().cluster.port, load().channels.tick_min_interval, load().results.retain_size) == (8420, 0.005, 10**9)


def test_the_later_source_wins(written):
    path = written('[cluster]\nport = 1\nhost = "::1"\nmaster = "local[2]"\n')
    found = resolve(path, {"TOCSIN_CLUSTER_PORT": "2", "TOCSIN_CLUSTER_HOST": "localhost"}, {"cluster.port": 3})
    assert (found.config.cluster.port, found.config.cluster.host, found.config.cluster.master) == (
        3,
        "localhost",
        "local[2]",
    )
    assert found.sources == {
        "cluster.port": "command line",
        "cluster.host": "environment",
        "cluster.master": str(path),
    }


def test_a_flag_that_was_not_given_overrides_nothing():
    assert load(overrides={"cluster.port": None}) == Config()


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        pytest.param("channels.index", "no", False, id="a flag in words"),
        pytest.param("channels.tick_min_interval", "1s 500ms", 1.5, id="a duration"),
        pytest.param("ingest.max_record_bytes", "64 kB", 64_000, id="a size"),
        pytest.param("channels.cell", "250", 250.0, id="a number"),
        pytest.param("cluster.spark_conf", '{"spark.ui.enabled": true}', {"spark.ui.enabled": "true"}, id="a table"),
    ],
)
def test_the_environment_writes_every_kind_as_text(path, text, value):
    section, name = path.split(".")
    assert getattr(getattr(load(environ={SETTINGS[path].variable: text}), section), name) == value


def test_dots_in_a_table_belong_to_the_names(written):
    path = written("[cluster.spark_conf]\nspark.sql.shuffle.partitions = 4\n'spark.ui.enabled' = false\n")
    assert load(path).cluster.spark_conf == {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("[cluster]\nprot = 1", "unknown key 'cluster.prot'; did you mean 'cluster.port'?", id="a key"),
        pytest.param("[clutser]\nport = 1", "unknown key 'clutser.port'; did you mean 'cluster.port'?", id="a section"),
        pytest.param("chanels = 1", "unknown section 'chanels'; did you mean 'channels'?", id="a bare key at the top"),
        pytest.param(
            "[cluster]\nport = 'x'", "cluster.port: expected an integer from 0 to 65535, got 'x'", id="a text"
        ),
        pytest.param(
            "[cluster]\nport = true", "cluster.port: expected an integer from 0 to 65535, got True", id="a flag"
        ),
        pytest.param("[select]\ntimeout = 30", "select.timeout: expected a duration from '1ms' to '24h'", id="no unit"),
        pytest.param("[channels]\ncell = 0", "channels.cell: expected a number above 0", id="a bound"),
        pytest.param("[channels]\ncell = nan", "channels.cell: expected a number above 0", id="not a number"),
        pytest.param("[log]\nlevel = 'loud'", "log.level: expected one of debug, info, warning, error", id="a choice"),
        pytest.param("[cluster]\nspark_conf = 'x'", "cluster.spark_conf: expected a table of texts", id="no table"),
        pytest.param("[cluster]\nspark_conf = {a = [1]}", "cluster.spark_conf: expected a table", id="a list inside"),
        pytest.param("[cluster\n", "is not TOML", id="broken syntax"),
    ],
)
def test_a_problem_in_the_file_names_file_key_and_what_was_expected(written, content, problem):
    path = written(content)
    (found,) = problems(path)
    assert found.startswith(f"{path}: ")
    assert problem in found


def test_every_problem_is_told_at_once(written):
    path = written("[cluster]\nprot = 1\nport = -1\n[outbox]\nbackoff_min = '2m'\n")
    environ = {"TOCSIN_LOG_LEVL": "info", "PATH": "/bin"}
    assert [p.split(": ", 1)[1] for p in problems(path, environ)] == [
        "unknown key 'cluster.prot'; did you mean 'cluster.port'?",
        "unknown variable 'TOCSIN_LOG_LEVL'; did you mean 'TOCSIN_LOG_LEVEL'?",
        "cluster.port: expected an integer from 0 to 65535, got -1",
        "expected at most outbox.backoff_max",
    ]


def test_variables_that_others_read_are_left_alone():
    assert (
        load(environ={"TOCSIN_TOKEN": "x", "TOCSIN_URL": "y", "TOCSIN_CONFIG": "z", "TOCSIN_TEST_A": "1"}) == Config()
    )


def test_a_file_that_is_not_there_is_a_problem(tmp_path):
    assert "cannot be read" in problems(tmp_path / "none.toml")[0]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_insecure_is_allowed_on_loopback(host):
    assert load(overrides={"cluster.insecure": True, "cluster.host": host}).cluster.insecure


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", "localhost.example.org"])
def test_insecure_is_refused_elsewhere(host):
    assert not is_loopback(host)
    assert "cluster.insecure" in problems(overrides={"cluster.insecure": True, "cluster.host": host})[0]


def test_a_batch_holds_at_least_one_record():
    assert problems(overrides={"ingest.max_record_bytes": "17 MB"}) == [
        "ingest.max_record_bytes: expected at most ingest.max_batch_bytes"
    ]


@pytest.mark.parametrize("path", SETTINGS)
def test_every_default_is_a_value_it_accepts(path):
    setting = SETTINGS[path]
    assert setting.accepts(setting.default)
    assert setting.sentence.endswith(".")


WRITTEN = st.fixed_dictionaries(
    {
        "cluster.data_dir": st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda t: "\n" not in t),
        "cluster.port": st.integers(0, 65535),
        "cluster.spark_conf": st.dictionaries(st.text("ab.", min_size=1), st.text("v'\"\\"), max_size=3),
        "channels.tick_min_interval": st.integers(0, 60_000).map("{}ms".format),
        "channels.cell": st.floats(0, 1e9, exclude_min=True),
        "results.retain_size": st.integers(1, 10**12).map("{} B".format),
    }
)


@settings(deadline=None)
@given(WRITTEN)
def test_a_shown_configuration_reads_back_as_itself(written):
    config = load(overrides=written)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "tocsin.toml"
        path.write_text(as_toml(config, dict.fromkeys(written, "command line")))
        assert load(path) == config


def test_the_secret_lies_in_the_data_directory_unless_told_otherwise():
    assert load(overrides={"cluster.data_dir": "d"}).secret_path == Path("d/secret")
    assert load(overrides={"auth.secret_file": "/run/s"}).secret_path == Path("/run/s")


def test_the_reference_page_is_current():
    assert REFERENCE.read_text() == as_markdown(Config), "run: tocsin config docs > docs/reference/configuration.md"


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().cluster.port = 1


def test_addresses_of_version_six_have_brackets_and_any_interface_is_reached_by_loopback():
    assert url_of("https", "fd00::1", 1) == "https://[fd00::1]:1"
    assert url_of("http", "0.0.0.0", 1) == "http://0.0.0.0:1"
    assert [own_url("http", host, 1) for host in ("0.0.0.0", "::", "a.example")] == [
        "http://127.0.0.1:1",
        "http://[::1]:1",
        "http://a.example:1",
    ]
