"""What ops of every family stand on: promotion, dimensions, sums of gradients, blocks of memory."""
