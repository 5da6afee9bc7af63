"""Whom to trust at the other end of a connection with TLS."""

from __future__ import annotations

import ssl

from tocsin.errors import Unavailable


def trusting(setting: str, ca_file: str) -> ssl.SSLContext | None:
    """A context that trusts the authorities in a file alone; None, for the machine's, where none is named."""
    if not ca_file:
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Unavailable(f"{setting}: no certificates could be read from {ca_file}: {error}") from None
