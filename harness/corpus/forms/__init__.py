"""Operator forms: models of one operator each, drawn from its schema, with good inputs.

`kernels.json` has what the schemas and the CPU EP's kernels say; a family of operators has its shape rules.
"""
