"""Ops over dimensions: sums, extremes, statistics, norms, running sums, order."""
