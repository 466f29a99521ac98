"""Verify a submission without a network: what a stranger can check, each fault with its name and reason.

``verify.verify`` is the entry point; ``finding`` has every name.
"""
