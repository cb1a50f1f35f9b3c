"""What takes arrays from process to process, tried by itself."""
