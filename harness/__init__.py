"""Execution-provider test harness for ONNX Runtime."""

__version__ = "0.1.0"
