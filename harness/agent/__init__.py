"""Floor 1w: the modules that run inside a target's process, sent there as source.

They need Python >= 3.9, numpy, onnxruntime >= 1.16, and no other part of this package. `importer.py` comes
first and makes the others importable; `agent.py` is the entry point; `launcher.py` starts it elsewhere.
"""
