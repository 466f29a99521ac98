"""Floor 3: studies that use the engine: goldens recorded and verified, options advised, levels, the doctor.

A study asks the engine to compute something, and turns the answers into one result. It moves no cells itself.
"""
