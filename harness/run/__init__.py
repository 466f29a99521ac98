"""Floor 3: one run: its folder of records and artifacts, its totals, and its continuation.

Reads events of the engine; starts no process.
"""
