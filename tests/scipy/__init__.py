"""Tests of `lucid.scipy`."""
