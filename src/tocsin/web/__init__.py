"""HTTP as every server of Tocsin speaks it: problems, tokens, bodies, time limits, the OpenAPI document."""
