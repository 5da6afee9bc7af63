from support.cluster_api import anyone, app, client, cluster, metrics, token

__all__ = ["anyone", "app", "client", "cluster", "metrics", "token"]
