"""Tocsin: active data publish/subscribe on Spark."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("tocsin")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0.0.0"

__all__ = ["__version__"]
