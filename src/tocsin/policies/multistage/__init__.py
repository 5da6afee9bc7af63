"""Balancing brokers by moving subscribers: stages 2 and 3 of the multistage framework, and better ones."""
