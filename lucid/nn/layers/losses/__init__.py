"""Losses as layers."""
