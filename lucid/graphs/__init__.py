"""CUDA graphs: work that is recorded once and launched as a whole."""
