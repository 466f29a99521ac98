"""Decoders with their cache: steps through a text, in the ways that applications use.

The harness lays out the text; see ``harness.core.records.ways``.
"""
