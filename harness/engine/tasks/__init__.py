"""Tasks and their outcomes: what is run on which configuration, and how each ends."""
