"""Random streams: their state, words of Philox, and arrays drawn from them."""
