"""Durable storage: the ledger (one commit point), record logs, datasets, result files.

Bulk data is written and synced first; one ledger transaction then makes it visible. A kill before
that transaction leaves orphan files, which the next start sweeps; a kill after it leaves a finished
execution. Nothing here knows Spark.
"""
