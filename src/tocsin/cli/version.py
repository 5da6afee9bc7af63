"""``tocsin version``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

from tocsin import __version__
from tocsin.cli.options import Json
from tocsin.cli.output import console, print_json


def version(as_json: Json = False) -> None:
    """Print the versions of Tocsin, Python and PySpark."""
    found = {"tocsin": __version__, "python": platform.python_version(), "pyspark": package_version("pyspark")}
    if as_json:
        print_json(found)
        return
    spark = found["pyspark"] or "not installed"
    console().print(f"tocsin {found['tocsin']} (Python {found['python']}, PySpark {spark})", markup=False)


def package_version(name: str) -> str | None:
    try:
        return installed(name)
    except PackageNotFoundError:
        return None
