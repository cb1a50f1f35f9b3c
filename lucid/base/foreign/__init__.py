"""Memory of other libraries: how their arrays are read, and what they are told of lucid's."""
