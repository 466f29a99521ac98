"""Fuzzing: generated models through one engine until time is up; what is new or fails is kept.

Models and their judgment are those of any run; triage turns the failures into faults.
"""
