"""Times of runs, and what can be concluded from them."""
