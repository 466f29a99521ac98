"""Generated models: variants of a model that keep its answer, and random graphs.

The docstring of each transformation proves why the answer stays: to the last bit, or within rounding noise.
"""
