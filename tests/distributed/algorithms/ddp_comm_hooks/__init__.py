"""Tests of communication hooks."""
