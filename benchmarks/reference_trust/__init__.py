"""Checks ``onnx.reference``, operator by operator and version by version, against the CPU provider.

The result is ``harness/golden/reference_trust.toml``, which says where that reference of a golden is right.
"""
