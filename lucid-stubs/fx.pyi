# Written by `python -m tests.compat.stubs`.
from lucid.compat.refusals import Graph as Graph
from lucid.compat.refusals import GraphModule as GraphModule
from lucid.compat.refusals import Node as Node
from lucid.compat.refusals import Tracer as Tracer
from lucid.compat.refusals import symbolic_trace as symbolic_trace

__all__ = ['Graph', 'GraphModule', 'Node', 'Tracer', 'symbolic_trace']
