"""Floor 1w: the one module that runs inside a target's process, sent there as source.

`agent.py` needs Python >= 3.9, numpy and some onnxruntime >= 1.16, and nothing else of this package.
"""
