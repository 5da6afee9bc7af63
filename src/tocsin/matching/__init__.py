"""Indexes over many stored predicates, probed by few records: plain arrays and numba kernels."""
