"""Floor 3: studies: goldens recorded and verified, options advised, optimization levels, the doctor.

A study gives the engine cells or models, and turns the events into one result.
"""
