"""Decoders with a cache: the roles of their inputs and outputs, and the texts that they play."""
