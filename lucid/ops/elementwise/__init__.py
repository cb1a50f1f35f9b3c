"""Ops of which each element depends on the operands' elements at the same index, one file a family."""
