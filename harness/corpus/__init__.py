"""Floor 1: models to run, with their inputs and expected outputs.

Suites and folders are listed without opening a model; a case is read when its cell is about to run.
"""
