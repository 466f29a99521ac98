"""From an outcome and the answers to the facts of a cell."""
