"""Annexes: what a reader of "matrix in, table out" need not see.

An annex imports the floors below, and another annex only where tests/test_floors.py says so.
Nothing below imports an annex.
"""
