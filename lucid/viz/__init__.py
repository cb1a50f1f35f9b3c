"""Pictures of graphs and models: the graph of a backward pass with the hooks on it, and the table of a model."""

from lucid.public import publish as _publish
from lucid.viz.graph import DotMissingError, Graph, graph
from lucid.viz.summary import Line, Summary, summary

__all__ = ["DotMissingError", "Graph", "Line", "Summary", "graph", "summary"]

_publish(globals())
