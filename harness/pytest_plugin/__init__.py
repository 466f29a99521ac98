"""Floor 4: the pytest front end: cells of a matrix as test items, and a fixture for tests in Python.

pytest loads `plugin`, which stays light; the other modules are imported when a matrix is named.
"""
