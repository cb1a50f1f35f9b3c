"""Tests of what processes compute in the place of a mean."""
