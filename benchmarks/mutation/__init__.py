"""Random mutations of everything that somebody else may have written, and what commands make of them."""
