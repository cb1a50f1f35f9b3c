"""Workers that read batches ahead of the training loop: processes and threads."""
