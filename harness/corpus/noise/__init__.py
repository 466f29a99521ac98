"""Rounding noise: models in which every rounding is drawn at random."""

AMPLITUDE = "ep_harness.noise_amplitude"
"""The further input of a model with noise: a float32 scalar that all noise is multiplied by."""

BFLOAT16_CASTS = 13
"""Opset from which on Cast takes bfloat16."""
