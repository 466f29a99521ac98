"""Floor 1: facts about execution providers, read from ``matrices/providers/*.toml``.

Whether a provider works on this machine is found by the agent.
"""
