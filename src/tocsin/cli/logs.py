"""Log handlers; only the command line configures them."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tocsin.config import Log

_QUIET = ("httpx", "httpcore", "asyncio", "numba", "uvicorn")  # chatty below warning


def configure_logging(settings: Log) -> None:
    """Messages go to standard error, as the settings say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.format == "json" else TextFormatter())
    handler.addFilter(_is_not_of_py4j)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """It logs with a traceback, partly as the root logger, what it raises as well."""
    return "py4j" not in Path(record.pathname).parts


class TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()
