"""Floor 3: studies: goldens recorded and verified, options advised, optimization levels, the doctor.

A study submits cells or models to the engine, and turns the events into one result.
"""
