"""What single ops launch on a CUDA device, one file a kind."""
