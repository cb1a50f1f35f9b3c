"""Rows of ops that are composed of others, or asked for less often."""
