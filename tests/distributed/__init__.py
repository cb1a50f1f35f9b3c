"""Tests of what processes train together."""
