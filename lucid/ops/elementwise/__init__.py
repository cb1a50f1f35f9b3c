"""Ops with each element a function of the operands' elements at the same index, one file a family."""
