"""Tests of groups of processes and of what they compute together."""
