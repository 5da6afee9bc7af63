"""The data cluster's REST interface."""

from tocsin.datacluster.api.app import create_app
from tocsin.datacluster.api.limits import ApiLimits

__all__ = ["ApiLimits", "create_app"]
