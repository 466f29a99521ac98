"""Floor 1: goldens, the CPU provider's answers for models and their inputs, kept with provenance.

The store reads and writes; the engine runs the CPU EP in a process of its own.
"""
