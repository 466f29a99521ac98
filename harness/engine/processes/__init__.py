"""Processes of agents: how they start, here or behind ssh, and the messages to and from them."""
