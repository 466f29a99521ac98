"""Sizes that fit a graph: what its operators require of a model's open dimensions.

The graph is walked with trial sizes; nothing is run. A requirement that is not met leads back to the
dimension that has to change.
"""
