"""The broker coordination server: who is where, who lives, who moves."""
