"""Faults planted in the source, one at a time, each of which a neighbouring test has to find."""
