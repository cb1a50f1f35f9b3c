"""Normalisation layers; see `lucid.ops.layers.normalisation` for the rules of all normalisation.

`weight` is ones and `bias` zeros at first. `affine`, and `elementwise_affine`, say whether there are parameters, `bias`
whether it is among them; the names of those that are left out hold None.
"""
