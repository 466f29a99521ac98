"""Conversion of models to another precision, by onnxruntime's own converters.

Only the harness's own interpreter, which has onnx, runs these modules.
"""
