"""Floor 1: what a target's runtime is made of: Python environments, npm packages, Node.js and browsers.

`environments` builds what a matrix file asks for once and keeps it; the engine starts agents in it.
"""
