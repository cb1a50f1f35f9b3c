"""The backward pass: its loop, what it reaches, sums of gradients, nodes, and what runs at a moment."""
