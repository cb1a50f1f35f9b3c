"""The rows of `tests.samples`, one file for each family of ops."""
