"""Recording of nodes: primitives, derivative plans, saved tensors, views, Functions."""
