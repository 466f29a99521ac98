"""The check of Polygraphy's side of ``deep``: exit code 1 if the stand-in differs from a healthy provider.

Every tensor of the whole model is known, so a part is fed with what it would get there, as in a triage.
"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime

RTOL, ATOL = 1e-3, 1e-5


def main(model: str, values: str, log: str) -> int:
    """Compare both on one model."""
    with Path(log).open("a", encoding="utf-8") as file:
        file.write(f"{model}\n")
    stand_in = onnxruntime.InferenceSession
    (healthy,) = stand_in.__bases__
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    known = np.load(values)
    results = []
    for session_class in (healthy, stand_in):
        session = session_class(model, options, providers=["CPUExecutionProvider"])
        feeds = {port.name: known[port.name] for port in session.get_inputs()}
        results.append(session.run(None, feeds))
    pairs = zip(*results, strict=True)
    same = all(np.allclose(right, found, RTOL, ATOL, equal_nan=True) for right, found in pairs)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
