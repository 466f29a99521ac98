"""What records show beyond their verdicts: leaks, causes, shares of compute, what to ship."""
