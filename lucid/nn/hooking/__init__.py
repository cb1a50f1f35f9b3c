"""Hooks of modules: their tables, their registration, and the moments of a call that fire them."""
