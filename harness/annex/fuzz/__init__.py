"""Fuzzing: generated models through one engine until the time is up; new and failing ones are kept.

Models and their judgement are those of any run; triage turns the failures into faults.
"""
