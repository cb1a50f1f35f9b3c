"""Pooling over windows, fixed and adaptive."""
