"""How many faults of execution providers a tolerance finds, and how often it accuses a healthy one.

``python -m benchmarks.detection`` runs it; docs/reference/detection.md shows what came of it.
"""
