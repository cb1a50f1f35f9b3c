"""Module: its tree, its state, its conversion, and loads."""
