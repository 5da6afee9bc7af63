"""The data cluster: datasets, channels, subscriptions and results, evaluated on Spark."""
