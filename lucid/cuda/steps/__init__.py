"""The state of training on a device: the numbers of optimizers' steps, the scale of a loss."""
