"""Floor 0: values and pure functions.

No clock, no environment, no files, no onnxruntime: everything here can be tested with plain values.
"""
