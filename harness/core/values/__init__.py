"""ONNX values in memory and on the wire, and their digests."""
