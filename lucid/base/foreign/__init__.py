"""Memory of other libraries: reading their arrays, and describing lucid's to them."""
