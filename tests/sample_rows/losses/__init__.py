"""Rows of losses."""
