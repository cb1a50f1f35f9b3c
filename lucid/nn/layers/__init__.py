"""The layers, one file a kind."""
