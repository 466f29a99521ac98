"""What applications do with a model besides making a session and running it: one module for each scenario.

Each has a function ``play``, which takes a ``Turn``, does the scenario, and leaves in the turn's result what
a plain run leaves there, and in its ``facts`` what was seen.
"""
