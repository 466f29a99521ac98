"""Decoders with their cache: steps through a text, in the ways that applications take.

The harness lays out the text; see ``harness.core.ways``.
"""
