"""Floor 1: facts about execution providers, read from ``matrices/providers/*.toml``.

The agent finds out whether a provider works on this machine.
"""
