"""Reverse-mode differentiation: the graph, the engine that runs it backward, and its hooks."""
