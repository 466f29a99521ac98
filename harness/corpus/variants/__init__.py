"""Models that nobody wrote: variants of a model that keep its answer, and random graphs.

Each transformation proves in its docstring why the answer stays: to the last bit, or within rounding noise.
"""
