"""Attention and the layers of Transformers (Vaswani and others, 2017).

Sequences have the shape (length, batch, features), with `batch_first` (batch, length, features), or (length, features).
A mask of shape (queries, keys) or (batch * heads, queries, keys), and one of padded keys, of shape (batch, keys) or
(keys,), is True where a query may not look, or is added to the scores. A hint `is_causal` says that the mask, given all
the same, hides later keys from each query.
"""
