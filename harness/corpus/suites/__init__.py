"""Suites: which models there are, and whether onnx's checker accepts them."""
