"""The functions behind layers: convolution, pooling, normalisation, attention, embedding."""
