"""Models once more at another precision, by onnxruntime's own converters.

These modules run in the harness's own interpreter alone, where onnx is; nothing imports them elsewhere.
"""
