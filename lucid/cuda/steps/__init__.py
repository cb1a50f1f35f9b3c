"""What training keeps on a device: the numbers of optimizers' steps, the scale of a loss."""
