"""Bundles of real failures: their script with onnxruntime and numpy alone, and replay."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from harness.annex.triage.bundle import BundleContents, ModelSource, write_bundle
from harness.annex.triage.distance import distance
from harness.cli.main import main
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.fault import Fault, Repetition, Signature
from harness.core.records.verdict import Family, Verdict
from harness.core.values.value import Sequence, tensor
from harness.corpus.suites.suites import open_suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.matrix import read_matrix
from harness.plan.plan import Plan
from harness.plan.target import Runtime, Target
from harness.runtimes.environments import build
from harness.runtimes.installer import InstallError

ROOT = Path(__file__).parents[2]
CPU = "CPUExecutionProvider"
SUITE = "onnx-node"
GONE, THERE, UNKNOWN = 0, 1, 3

pytestmark = pytest.mark.real_ep


def fault_of(verdict: Verdict, target: Target, cause: str = "") -> Fault:
    return Fault(
        id="F0123456789",
        sentence="a failure of a real provider",
        signature=Signature(verdict=verdict, cause=cause),
        target=target.name,
        provider=target.provider[0],
        representative="",
        cells=(),
        confirmation=Repetition(outcome="always", trials=1, failures=1),
    )


def reproduce(python: str, folder: Path, **variables: str) -> tuple[int, str]:
    done = subprocess.run(
        [python, str(folder / "repro.py")],
        capture_output=True,
        check=False,
        cwd="/",
        encoding="utf-8",
        env={**os.environ, **variables},
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr


def test_onnxruntime_and_numpy_are_enough(tmp_path: Path) -> None:
    """The script needs neither onnx nor this package to see the fault, or its end."""
    version = importlib.import_module("onnxruntime").__version__
    try:
        python = str(build(Runtime(packages=(f"onnxruntime=={version}", "numpy"))))
    except InstallError as error:
        pytest.skip(f"no environment can be built here: {error}")
    found = subprocess.run(
        [
            python,
            "-c",
            "import importlib.util as u; print(*map(u.find_spec, ['onnx', 'ml_dtypes', 'harness']))",
        ],
        capture_output=True,
        check=True,
        cwd="/",
        encoding="utf-8",
    )
    assert found.stdout.split() == ["None"] * 3
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[2,3] x, string[2] t) => (float[2,3] y, string[2] u, seq(float[2,3]) s) {
            y = Relu(x) u = Identity(t) s = SequenceConstruct(y, x) }"""
    )
    given = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    right = np.maximum(given, 0)
    text = tensor(np.array(["ä", ""], object))
    target = Target(name="cpu", provider=(CPU,))
    for wrong, code in ((1, THERE), (0, GONE)):
        planted = tensor(right + np.float32(wrong))
        made = BundleContents(
            fault=fault_of(Verdict.MISMATCH, target),
            model=ModelSource(content=model.SerializeToString()),
            inputs=(("x", tensor(given)), ("t", text)),
            expected=(("y", planted), ("u", text), ("s", Sequence(items=(tensor(right), tensor(given))))),
            limits={"y": 1e-4, "u": 0.0, "s": 1e-4},
            target=target,
        )
        write_bundle(tmp_path / "F1", made)
        got, told = reproduce(python, tmp_path / "F1")
        assert got == code, told


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("test_stft", "qnn-htp"),
        ("test_maxpool_2d_pads", "qnn-htp"),
        ("test_reduce_log_sum_empty_set", "webgpu-swiftshader"),
    ],
)
def test_a_real_failure_is_there_again(
    tmp_path: Path, model: str, target: str, require: Callable[[str, str], None]
) -> None:
    contents = failing(model, target, require)
    archive = write_bundle(tmp_path / "F1", contents)
    code, told = reproduce(sys.executable, tmp_path / "F1", **contents.target.env)
    assert code == THERE, told
    matrix = ROOT / "matrices" / "local.toml"
    assert main(["replay", str(archive), "--target", f"{matrix}:{target}"]) == THERE
    assert main(["replay", str(archive), "--provider", CPU]) in {GONE, UNKNOWN}


def failing(model: str, name: str, require: Callable[[str, str], None]) -> BundleContents:
    """What a run of this cell gives, as contents of a bundle."""
    matrix = read_matrix(ROOT / "matrices" / "local.toml")
    target = next(one for one in matrix.targets if one.name == name)
    cell = Cell(suite=SUITE, model=model, target=name, axes=tuple(sorted(AXIS_DEFAULTS.items())))
    plan = Plan(matrix=matrix, cells=(cell,))
    ready: TargetReady | None = None
    finished: Finished | None = None
    with closing(Engine(plan, {SUITE: open_suite(SUITE)}, gives_outputs=True)) as engine:
        engine.submit([cell])
        engine.drain()
        for event in engine.events():
            ready = event if isinstance(event, TargetReady) else ready
            finished = event if isinstance(event, Finished) else finished
    assert ready is not None
    assert finished is not None
    require(target.provider[0], ready.problem)
    record, case = finished.record, finished.case
    assert record.family is Family.FAILED, record.reason
    assert case is not None
    data, outputs = case.data_sets[0], dict(finished.outputs)
    spec = importlib.util.find_spec(target.plugin or "")
    assert spec is not None
    return BundleContents(
        fault=fault_of(record.verdict, target, record.cause),
        model=ModelSource(content=case.model_path.read_bytes(), folder=case.model_path.parent),
        inputs=data.inputs,
        expected=data.expected,
        found=finished.outputs,
        limits={
            output: distance(value, outputs[output]) / 2  # type: ignore[arg-type]
            for output, value in data.expected
            if output in outputs
        },
        target=target,
        axes=dict(cell.axes),
        tolerance=plan.tolerance(cell),
        fingerprint=ready.fingerprint,
        library=Path(ready.fingerprint["plugin"]["library"]),
        printed=finished.printed,
    )
