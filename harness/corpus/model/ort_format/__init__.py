"""Models in onnxruntime's own format, a FlatBuffer, read as the ONNX models that they hold."""
