"""The worlds that demos, tests and benchmarks share: pure, seeded, and the same for the same seed."""
