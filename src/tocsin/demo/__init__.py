"""The demonstration: a generated city feeds a cluster of its own, and one broker checks what comes out.

It knows the cluster by its HTTP interface only, like any other program.
"""
