"""Everything that talks to Spark: the session, relations, subscriptions as tables, jobs."""
