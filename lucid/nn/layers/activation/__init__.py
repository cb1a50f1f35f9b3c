"""Activations as layers: each calls the function of its name in `lucid.nn.functional`."""
