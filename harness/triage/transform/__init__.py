"""Transformations that make a model smaller, a module for each kind.

Each is a search: it yields alternatives to the current net, and is sent the index of the first of them that
is interesting, or None.
"""
