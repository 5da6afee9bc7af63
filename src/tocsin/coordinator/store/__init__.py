"""Where the coordinator's rows live: SQLite, or PostgreSQL by URL."""
