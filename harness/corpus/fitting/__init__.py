"""Sizes that fit a graph: what its operators need of the dimensions that a model leaves open.

The graph is walked with sizes on trial, nothing is run. What an operator needs and does not get leads back to
the dimension that has to change.
"""
