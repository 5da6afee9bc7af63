"""Seeded fault runs: a whole system is hurt on purpose under traffic, and what arrived is held against what had to."""
