"""The families of distributions, by what they share; all of them are names of `lucid.distributions`."""
