"""Functions of random numbers that can be inverted, all of them names of `lucid.distributions.transforms`."""
