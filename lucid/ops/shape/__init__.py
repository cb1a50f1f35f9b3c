"""The same elements in another shape or order, joined, split, repeated and padded."""
