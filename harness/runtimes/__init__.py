"""Floor 1: the parts of a target's runtime: Python environments, npm packages, Node.js and browsers.

`environments` builds the environments of a matrix file once and keeps them; the engine starts agents in them.
"""
