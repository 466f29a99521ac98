"""Operators in float64 with numpy alone, implemented from ONNX's texts; ``table.py`` lists them."""
