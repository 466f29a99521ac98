"""Corner values: NaN, infinity, signed zero, denormals, large integers, ties, empty tensors.

One small model for each operator and corner, with the answer that IEEE 754 and ONNX define.
"""
