"""A model in float64, node by node: a reference for models that no single implementation computes in double.

Each node is computed by an operator of ``harness.agent.float64.table``; else by that of ``onnx.reference``,
if it is known to be right; else by the CPU provider's kernel for doubles. A node that none of them computes
is an error: nothing is computed in float32.
"""
