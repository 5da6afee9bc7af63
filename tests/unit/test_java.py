import subprocess
import sys
from pathlib import Path

import pytest

from tocsin import java
from tocsin.errors import Unavailable

FAKE = """#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""


def fake_java(folder, version):
    """A program that answers as ``java`` of that version does."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(FAKE.format(home=folder, version=version))
    binary.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_wheel(monkeypatch):
    monkeypatch.setattr(java, "WHEEL", "no_such_wheel")


def test_java_home_comes_first(tmp_path):
    a, b = fake_java(tmp_path / "a", 17), fake_java(tmp_path / "b", 21)
    found = java.find({"JAVA_HOME": str(a), "PATH": f"{b}/bin:/bin"})
    assert found == java.Java(a, 17, "JAVA_HOME")


@pytest.mark.parametrize("old", ["1.8", "11"])
def test_one_that_is_too_old_is_passed_over(tmp_path, old):
    a, b = fake_java(tmp_path / "a", old), fake_java(tmp_path / "b", 21)
    assert java.find({"JAVA_HOME": str(a), "PATH": f"{b}/bin:/bin"}) == java.Java(b, 21, "PATH")


def test_none_says_what_is_needed_and_what_was_passed_over(tmp_path):
    a = fake_java(tmp_path / "a", "1.8")
    with pytest.raises(Unavailable) as caught:
        java.find({"JAVA_HOME": str(a), "PATH": str(tmp_path)})
    assert "Spark needs Java 17 or later" in str(caught.value)
    assert "JAVA_HOME has Java 8" in str(caught.value)


def test_a_home_without_java_is_named(tmp_path):
    with pytest.raises(Unavailable, match="JAVA_HOME has no Java that runs"):
        java.find({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)})


def test_the_shim_drops_one_argument_and_keeps_the_others_whole(tmp_path):
    runtime = tmp_path / "run time"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nfor a; do printf "<%s>" "$a"; done\n')
    (runtime / "bin" / "java").chmod(0o755)
    binary = java.shim(runtime, tmp_path / "home")
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "'$x\"", "--add-modules=other"]
    assert subprocess.check_output([binary, *given], text=True) == "<-Xmx1g><a b><><'$x\"><--add-modules=other>"


def test_the_shim_is_written_again_when_the_runtime_moved(tmp_path):
    java.shim(Path("/one"), tmp_path)
    assert "/two/bin/java" in java.shim(Path("/two"), tmp_path).read_text()


def test_the_module_prints_one_sentence_where_there_is_none(tmp_path):
    command = [sys.executable, "-m", "tocsin.java", "home"]
    code = "import sys, tocsin.java as j; j.WHEEL = 'none'; sys.exit(j.main(['home']))"
    done = subprocess.run([*command[:1], "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "Spark needs Java 17" in done.stderr
