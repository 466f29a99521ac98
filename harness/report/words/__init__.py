"""Figures, facts and looks as text, harmless in each format."""
