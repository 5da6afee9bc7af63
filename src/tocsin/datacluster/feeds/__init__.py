"""Feeds that are streams by nature: Structured Streaming queries that append exactly once."""
