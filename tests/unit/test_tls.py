"""Whom to trust."""

import ssl
from pathlib import Path

import pytest

from support.authority import Certificate
from tocsin.errors import Unavailable
from tocsin.tls import trusting


def test_no_file_leaves_it_to_the_machine() -> None:
    assert trusting("http.ca_file", "") is None


def test_only_the_named_authorities_are_trusted(certificate: Certificate) -> None:
    found = trusting("http.ca_file", certificate.ca)
    assert found is not None
    assert found.verify_mode is ssl.CERT_REQUIRED
    assert found.check_hostname
    assert len(found.get_ca_certs()) == 1


def test_a_file_without_authorities_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for file in ("nowhere.pem", "empty.pem"):
        with pytest.raises(Unavailable, match=rf"http\.ca_file: .*{file}"):
            trusting("http.ca_file", str(tmp_path / file))
