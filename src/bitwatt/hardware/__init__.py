"""What processors are and execute: one sourced file each."""
