"""Activation functions, softmax and dropout, with fused derivatives."""
