"""Losses of numbers, classes and probabilities."""
