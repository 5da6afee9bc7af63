"""The prototype experiment of the multistage paper on a living system: real processes, real connections, less time."""
