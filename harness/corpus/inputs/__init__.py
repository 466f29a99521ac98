"""Generated inputs: what a graph allows, sizes of open dimensions, and the values."""
