"""Verify a submission without a network: what a stranger can check, each fault with its name and reason.

``verify.verify`` is the way in; ``finding`` has every name.
"""
