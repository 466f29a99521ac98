"""Models and data that are made of others: for a scenario, a precision, the noise of rounding."""
