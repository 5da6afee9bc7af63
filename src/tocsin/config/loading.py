"""Reading the configuration: file < environment < flags, and the whole checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tocsin.config.root import Config
from tocsin.errors import ConfigError
from tocsin.settings.declare import sections_of
from tocsin.settings.read import gather, values


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration, and for each setting that is not at its default where it came from."""

    config: Config
    sources: Mapping[str, str]


def load(
    path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Config:
    """The configuration; ``overrides`` are by path (``"cluster.port"``), and ``None`` overrides nothing."""
    return resolve(path, environ, overrides).config


def resolve(
    path: Path | None = None, environ: Mapping[str, str] | None = None, overrides: Mapping[str, Any] | None = None
) -> Resolved:
    """As ``load``, and where each value came from."""
    written, problems = gather(Config, path, environ or {}, overrides or {})
    found = values(Config, written, problems)
    config = Config(**{name: kind(**found[name]) for name, kind in sections_of(Config)})
    problems.extend(config.problems())
    if problems:
        raise ConfigError(*problems)
    return Resolved(config, {name: w.source for name, w in written.items()})
