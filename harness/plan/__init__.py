"""Floor 1: from a matrix file to cells.

``matrix`` reads and checks the file, ``expand`` takes the product, ``selector`` is the language of its lists.
"""
