"""Tested through the data cluster's application, over a cluster of dictionaries."""

from support.cluster_api import anyone, app, client, cluster, metrics, token

__all__ = ["anyone", "app", "client", "cluster", "metrics", "token"]
