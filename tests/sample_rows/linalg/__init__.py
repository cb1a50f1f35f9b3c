"""Rows of products, distances and decompositions of matrices."""
