"""The divergences of distributions, registered when they are imported."""
