"""The families of distributions, grouped by common properties; all of them are names of `lucid.distributions`."""
