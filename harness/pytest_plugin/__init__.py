"""Floor 4: the pytest front end: cells of a matrix as test items, and a fixture for tests in Python.

`plugin` is what pytest loads, and stays light; the other modules are imported once a matrix is asked for.
"""
