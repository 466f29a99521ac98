"""Floor 1w: the modules that run inside a target's process, sent there as source.

They need Python >= 3.9, numpy and some onnxruntime >= 1.16, and nothing of this package but each other. First
there is `importer.py`, which makes the others importable; `agent.py` is where the work begins. `launcher.py`
starts them on other machines, and needs the Python alone.
"""
