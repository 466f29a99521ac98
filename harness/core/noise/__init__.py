"""The rounding noise of a model, and errors as multiples of it."""
