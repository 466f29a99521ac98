"""What isolation, placement, comparison and records cost: the harness against a bare loop, in one run.

Both take ONNX's operator tests on the CPU provider. The bare loop creates, runs twice and compares in this
process, with nothing to lose; the harness does the same through its engine, an agent process and the judge.
Machines are shared and noisy, so only the ratio of two neighbouring measurements counts; the median of the
pairs is the figure.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from harness.core.value import Tensor
from harness.corpus.case import Case, load_case
from harness.corpus.errors import ModelError
from harness.corpus.suites import open_suite
from harness.engine.engine import Engine
from harness.engine.events import Finished
from harness.engine.prepare import prepare

MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "cpu"
provider = "CPUExecutionProvider"
"""


def main(pairs: int = 5) -> None:
    """Print each pair and the median ratio."""
    suite = open_suite("onnx-node")
    cases = [load_case(suite, model, {}) for model in suite.models()]
    with tempfile.TemporaryDirectory() as folder:
        matrix = Path(folder) / "m.toml"
        matrix.write_text(MATRIX, encoding="utf-8")
        through_harness(matrix)  # fills the golden cache
        ratios = []
        for _ in range(pairs):
            bare_s, ran = bare_loop(cases)
            harness_s, judged = through_harness(matrix)
            ratios.append(harness_s / bare_s)
            print(
                f"bare {bare_s:5.2f} s ({ran} ran)   harness {harness_s:5.2f} s ({judged} cells)"
                f"   ratio {ratios[-1]:.2f}"
            )
    print(f"median ratio {statistics.median(ratios):.2f}")


def bare_loop(cases: list[Case]) -> tuple[float, int]:
    """Seconds, and how many models ran, for those whose inputs numpy can hold."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    ran = 0
    started = time.perf_counter()
    for case in cases:
        data_set = case.data_sets[0]
        if not all(isinstance(value, Tensor) for _, value in data_set.inputs):
            continue
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        try:
            session = onnxruntime.InferenceSession(str(case.model_path), settings)
            feeds = {name: value.array for name, value in data_set.inputs if isinstance(value, Tensor)}
            for _ in range(2):
                outputs = session.run(None, feeds)
        except Exception:  # noqa: BLE001, S112 - what the provider refuses is no part of the loop
            continue
        for result, (_, expected) in zip(outputs, data_set.expected, strict=False):
            if isinstance(expected, Tensor) and isinstance(result, np.ndarray) and result.dtype.kind == "f":
                np.allclose(result, expected.array.astype(result.dtype), rtol=1e-3, atol=1e-5)
        ran += 1
    return time.perf_counter() - started, ran


def through_harness(matrix: Path) -> tuple[float, int]:
    """Seconds and cells, from the matrix file to the last record."""
    started = time.perf_counter()
    plan, suites = prepare(matrix)
    engine = Engine(plan, suites)
    engine.submit(plan.cells)
    engine.drain()
    judged = sum(isinstance(event, Finished) for event in engine.events())
    return time.perf_counter() - started, judged


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:2]))
    except ModelError as error:
        sys.exit(str(error))
