"""Rounding noise inside a graph: which operators round, by how much, and the graph that shows it.

``harness.corpus.noisy`` makes a case of it.
"""
