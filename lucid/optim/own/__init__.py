"""Optimizers of a formula on elements that PyTorch does not have."""
