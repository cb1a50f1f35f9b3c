"""The backward pass: its loop, its reach, sums of gradients, nodes, and the node that runs now."""
