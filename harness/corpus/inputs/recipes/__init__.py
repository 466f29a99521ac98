"""Inputs that look real, drawn from a seed in code: pictures, a voice, padded rows, boxes."""
