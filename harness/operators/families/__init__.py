"""The rows of the book, by families of operators.

A row takes as few lines as it can, so that a family reads as a table: hence ``fmt: off``.
"""
