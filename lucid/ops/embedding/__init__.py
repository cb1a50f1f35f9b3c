"""Rows of tables by their numbers. Common rules of layers: `lucid.ops.layers`."""
