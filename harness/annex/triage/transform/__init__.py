"""Transformations that make a model smaller, a module for each kind.

Each is a search: it yields alternatives to the current net, and receives the index of the first interesting
one, or None.
"""
