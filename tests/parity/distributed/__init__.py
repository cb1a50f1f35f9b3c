"""Groups and collectives beside PyTorch's, among two processes."""
