"""What differs between two runs, and whether that passes a gate."""
