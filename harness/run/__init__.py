"""Floor 3: one run on disk: its folder of records and artifacts, its totals, and how it is resumed.

Reads events of the engine; starts no process.
"""
