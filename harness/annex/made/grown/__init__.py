"""Random graphs: a grammar of operators, each node typed by ONNX's own inference.

Values are small dyadic numbers, so they are the same on every machine, and sums of few of them are exact.
"""
