"""Faults that only show in rare forms: how many of 60 does a fuzz suite find, and how many ONNX's tests?

An EP is faked by an onnxruntime whose CPU provider has all of these faults, one of them in each model.
"""
