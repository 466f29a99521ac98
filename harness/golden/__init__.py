"""Floor 1: goldens, what the CPU provider computed for a model and its inputs, kept with provenance.

The store reads and writes; it computes nothing. The engine runs the CPU EP in a process of its own.
"""
