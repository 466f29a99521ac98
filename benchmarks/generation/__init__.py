"""How many faults of generating text are found: by the scenario ``generate``, one forward pass, greedy text.

``python -m benchmarks.generation`` runs it; docs/reference/detection.md shows what came of it.
"""
