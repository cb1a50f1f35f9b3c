"""Twelve things that people do with hooks, written with lucid and with what PyTorch's users write them with."""
