"""Floor 1w: the modules that run inside a target's process, sent there as source.

`agent.py` needs Python >= 3.9, numpy and some onnxruntime >= 1.16, and nothing else of this package;
`launcher.py`, which starts it on other machines, needs the Python alone.
"""
