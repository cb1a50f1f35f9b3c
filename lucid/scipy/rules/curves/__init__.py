"""Rules of `scipy.interpolate`."""
