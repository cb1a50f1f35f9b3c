"""Recurrent layers: steps, whole sequences of them, and the layers of both."""
