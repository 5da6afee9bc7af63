"""The data cluster's REST interface."""

from tocsin.datacluster.api.app import create_app
from tocsin.datacluster.api.limits import ApiLimits
from tocsin.datacluster.api.server import ApiServer, ServerOptions, Tls

__all__ = ["ApiLimits", "ApiServer", "ServerOptions", "Tls", "create_app"]
