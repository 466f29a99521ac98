"""Operator forms: models of one operator each, drawn from its schema, with good inputs.

`kernels.json` has the facts of the schemas and of the CPU EP's kernels; a family of operators has its shape
rules.
"""
