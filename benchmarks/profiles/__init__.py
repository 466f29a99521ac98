"""Which cases the frozen profiles have: those that show faults which no other case shows."""
