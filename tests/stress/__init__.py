"""Long searches that are commands of their own; tests run short forms of them."""
