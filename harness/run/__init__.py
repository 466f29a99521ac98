"""Floor 3: one run: its folder of records and artifacts, its totals, and its continuation.

It reads events of the engine, and starts no process.
"""
