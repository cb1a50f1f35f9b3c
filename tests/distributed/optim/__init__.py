"""Tests of optimizers of several processes."""
