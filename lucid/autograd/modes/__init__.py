"""Modes of recording, per thread, and the context managers that set them."""
