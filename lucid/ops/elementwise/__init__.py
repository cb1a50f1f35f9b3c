"""Ops whose result at a place depends on the operands there, one file a family."""
