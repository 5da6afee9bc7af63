"""The whole system as processes on one machine: what they are, how they start, how they end."""
