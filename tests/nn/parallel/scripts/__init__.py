"""What processes of a job go through."""
