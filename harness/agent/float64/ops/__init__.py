"""Operators in float64 with numpy alone, after the text of each; ``table.py`` lists them."""
