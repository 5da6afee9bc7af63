"""Multistage adaptive load balancing (DEBS 2019): its worlds, its figures, its claims."""
