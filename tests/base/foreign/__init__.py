"""Tests of how memory of other libraries is read."""
