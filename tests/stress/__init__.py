"""Commands that repeat what is rare until it would have shown, each with a short form among the tests."""
