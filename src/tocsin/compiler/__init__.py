"""From a channel's query to plans: validation, the shared SQL, what an index can answer. Pure."""
