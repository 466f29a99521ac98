"""Code that advise prints, run as pasted, on execution providers that are plugins."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.annex.advise.candidates import Candidate
from harness.annex.advise.fastest import advise
from harness.annex.advise.level_study import examine_levels
from harness.annex.advise.search_result import TriedCandidate
from harness.annex.advise.session_code import session_code
from harness.core.records.verdict import Family
from harness.corpus.suites.suite import Suite
from harness.corpus.suites.suites import open_model
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target

pytestmark = pytest.mark.real_ep

QNN = Target(
    name="qnn",
    provider=("QNNExecutionProvider",),
    plugin="onnxruntime_qnn",
    options={"backend_type": "htp"},
)
MATRIX = Matrix(path="m", schema=1, models=ModelSelection(), targets=(QNN,))


@pytest.fixture(scope="module")
def mnist() -> Suite:
    pytest.importorskip("onnxruntime_qnn", exc_type=ImportError)
    return open_model("zoo/mnist-small-op12")


def test_the_code_of_a_plugin_runs_as_pasted(mnist: Suite, tmp_path: Path) -> None:
    def stop(_: TriedCandidate) -> None:
        raise KeyboardInterrupt

    found = advise(mnist, MATRIX, until=time.monotonic() + 400, notify=lambda _: None, show=stop)
    (one,) = (*found.ranked, *found.fell_out)
    assert one.record.family is Family.PASSED, one.fell_out
    assert one.candidate == Candidate(target="qnn")
    assert one.bits > 15
    (model,) = mnist.models()
    code = session_code(found.targets["qnn"], one.candidate.cell(mnist.name, model), mnist.model_path(model))
    script = tmp_path / "pasted.py"
    script.write_text(code + "print(session.get_providers())\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        encoding="utf-8",
        env=dict(os.environ),
        timeout=300,
    )
    assert "QNNExecutionProvider" in done.stdout, done.stderr[-2000:]


def test_a_compiling_provider_loses_what_the_cpu_fused_into_an_ort_model(mnist: Suite) -> None:
    found = examine_levels("mnist", mnist, MATRIX, lambda _: None)
    (qnn,) = found.targets
    shares = dict(zip([step.name for step in found.steps], qnn.shares, strict=True))
    for level in ("disabled", "basic", "extended", "layout", "all"):
        share = shares[level]
        assert share is not None
        assert share.nodes == share.of
        assert share.partitions == 1
    basic, extended = shares["ORT basic"], shares["ORT extended"]
    assert basic is not None
    assert basic.inferred
    assert basic.nodes == 8
    assert extended is not None
    assert extended.verdict.family is Family.FAILED
