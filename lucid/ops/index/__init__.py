"""Elements by index: brackets, gather and scatter, masks, rows, and the sums of their gradients."""
