"""Transformations that make a model smaller, each a module of its own with one public function.

Each is a search: it yields alternatives to the current net, and is sent the index of the first of them that
is interesting, or None.
"""
