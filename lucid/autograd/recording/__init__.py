"""What a node keeps and how it is recorded: primitives, plans, saved tensors, views, Functions."""
