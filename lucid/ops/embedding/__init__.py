"""Rows of tables by their numbers; what holds for them as for all layers says `lucid.ops.layers`."""
