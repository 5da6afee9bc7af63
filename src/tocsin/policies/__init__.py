"""Every balancing algorithm: pure, one a file. Chance and time come from outside."""
