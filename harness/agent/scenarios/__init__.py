"""What applications do with a model besides making a session and running it: one module for each scenario.

Each has a function ``play``, which takes a ``JobRun`` and does the scenario. It leaves in the job's
result what a plain run leaves there, and in its ``facts`` what was seen.
"""
