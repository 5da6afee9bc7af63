"""The coordinator's REST interface."""

from tocsin.coordinator.api.app import create_app

__all__ = ["create_app"]
