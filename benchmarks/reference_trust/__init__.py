"""Checks ``onnx.reference``, operator by operator and version by version, against the CPU provider.

What comes out is ``harness/golden/reference_trust.toml``, which says where that witness of a golden is right.
"""
