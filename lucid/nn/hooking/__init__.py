"""Hooks of modules: their tables, registration, and the moments of a call at which they fire."""
