"""Pictures of what lucid does: the graph of a backward pass, with the hooks on it."""

from lucid.viz.graph import DotMissingError, Graph, graph

__all__ = ["DotMissingError", "Graph", "graph"]
