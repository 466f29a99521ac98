"""The lab on the CPU provider: results are kept, and nothing runs twice."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from harness.annex.triage.lab import Lab, Trial, after_target_name, after_targets
from harness.annex.triage.subject import Subject
from harness.core.records.verdict import Family, Verdict
from harness.core.values.value import Tensor, tensor
from harness.plan.target import Target

CPU = Target(name="cpu", provider=("CPUExecutionProvider",))
X = np.array([-1.0, 2.0], np.float32)


def subject_of(body: str = "y = Relu (x)") -> Subject:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
        agraph (float[2] x) => (float[2] y) {{ {body} }}""")
    return Subject(model=model.SerializeToString(), inputs=(("x", tensor(X)),))


def trial_of(body: str = "y = Relu (x)", number: int = 0) -> Trial:
    return Trial(subject=subject_of(body), target="cpu", number=number)


OpenLab = Callable[[], Lab]


@pytest.fixture
def open_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenLab:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(tmp_path / "cache"))
    return lambda: Lab([CPU, *after_targets(CPU, 2)], tmp_path / "lab", lambda _: None)


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return tmp_path / "lab" / "trials.jsonl"


def test_trials_are_judged_and_their_outputs_are_there(open_lab: OpenLab, tmp_path: Path) -> None:
    with open_lab() as lab:
        right, broken = lab.run([trial_of(), trial_of("y = Reshape (x, x)")])
        assert lab.trials == 2
        assert lab.fingerprints["cpu"]["onnxruntime"]
        assert not list((tmp_path / "lab" / "models").iterdir())
    assert right.record.verdict is Verdict.PASS
    ((name, value),) = right.outputs
    assert name == "y"
    assert isinstance(value, Tensor)
    assert value.array.tolist() == [0.0, 2.0]
    assert broken.record.family is not Family.PASSED
    assert not (tmp_path / "lab" / "models").exists()


def test_no_trial_is_repeated_here_or_by_the_next_session(open_lab: OpenLab) -> None:
    with open_lab() as lab:
        first, second = lab.run([trial_of(), trial_of()])
        assert first is second
        assert lab.run([trial_of()])[0].record == first.record
        assert lab.trials == 1
        lab.run([trial_of(number=1)])
        assert lab.trials == 2  # a repetition is another trial
    with open_lab() as lab:
        (again,) = lab.run([trial_of()])
        assert again.record == first.record
        assert again.outputs == ()
        assert lab.trials == 0
        (fresh,) = lab.run([trial_of()], fresh=True)
        assert fresh.outputs
        assert lab.trials == 1


def test_torn_lines_cost_their_trials(open_lab: OpenLab, lines: Path) -> None:
    trials = [trial_of(number=0), trial_of(number=1)]
    with open_lab() as lab:
        lab.run(trials)
    first, second = lines.read_bytes().splitlines()
    broken = [b'{"key": "\xff\xfe"}', b"\x00\x01", b"[]", b"", b'{"key": "k", "record": {}, "printed": ""}']
    lines.write_bytes(b"\n".join([*broken, first, second[: len(second) // 2]]))
    with open_lab() as lab:
        lab.run(trials)
        assert lab.trials == 1
    with open_lab() as lab:  # what followed the torn line is whole
        lab.run(trials)
        assert lab.trials == 0
    assert json.loads(lines.read_bytes().splitlines()[-1])["record"]["verdict"] == "pass"


def test_models_that_run_before_are_no_results(open_lab: OpenLab) -> None:
    before = subject_of("y = Neg (x)")
    with open_lab() as lab:
        trial = Trial(subject=subject_of(), target="cpu", after=(before, before))
        assert trial.key != trial_of().key
        (seen,) = lab.run([trial])
        assert lab.trials == 1
    assert seen.record.process is not None
    assert seen.record.process.session == 3
    assert seen.record.target == after_target_name("cpu", 2)


DYING = Target(
    name="dying",
    provider=("CPUExecutionProvider",),
    env={
        "PYTHONPATH": str(Path(__file__).parent / "planted_onnxruntime"),
        "PLANTED_FAULT": json.dumps({"kind": "crash", "op_type": "Neg", "phase": "run", "signal": "SIGKILL"}),
    },
)


@pytest.mark.skipif(os.name != "posix", reason="dies of a POSIX signal")
def test_a_model_that_kills_the_process_does_not_shift_what_others_run_after(
    tmp_path: Path, own_cache: Path
) -> None:
    assert own_cache
    right, deadly = subject_of("y = Abs (x)"), subject_of("y = Neg (x)")
    with Lab([DYING, *after_targets(DYING, 2)], tmp_path / "lab", lambda _: None) as lab:
        dead, *others = lab.run(
            [
                Trial(subject=subject_of(), target="dying", after=(right, deadly)),
                Trial(subject=subject_of(), target="dying", after=(right, right)),
                Trial(subject=subject_of(), target="dying", number=1, after=(right, right)),
            ]
        )
        assert lab.trials == 3
    assert dead.record.process is not None
    assert dead.record.process.session == 1
    assert [one.record.process and one.record.process.session for one in others] == [3, 3]


def test_the_cpu_is_timed(open_lab: OpenLab) -> None:
    with open_lab() as lab:
        took_s = lab.cpu_seconds(subject_of())
        assert took_s is not None
        assert 0 < took_s < 60
        assert lab.cpu_seconds(subject_of("y = Reshape (x, x)")) is None


def test_keys_tell_trials_apart() -> None:
    one = trial_of()
    others = [
        trial_of("y = Neg (x)"),
        trial_of(number=1),
        Trial(subject=one.subject, target="other"),
        Trial(subject=one.subject, target="cpu", axes=(("scenario", "concurrent"),)),
        Trial(subject=one.subject, target="cpu", after=(one.subject,)),
        Trial(subject=Subject(model=one.subject.model, inputs=()), target="cpu"),
    ]
    keys = {one.key, *(other.key for other in others)}
    assert len(keys) == len(others) + 1
    assert trial_of().key == one.key


def test_inner_tensors_are_those_of_the_cpu(open_lab: OpenLab) -> None:
    subject = subject_of("a = Neg (x) b = Exp (a) y = Add (a, b)")
    with open_lab() as lab:
        found = lab.values(subject, ["b", "a", "x", "nothing"])
        assert lab.values(subject, []) == {}
    assert set(found) == {"a", "b", "x"}
    assert isinstance(found["a"], Tensor)
    assert isinstance(found["b"], Tensor)
    assert found["a"].array.tolist() == [1.0, -2.0]
    np.testing.assert_allclose(found["b"].array, np.exp(-X), rtol=1e-6)


def test_tensors_behind_a_node_that_the_cpu_cannot_run_are_left_out(open_lab: OpenLab) -> None:
    subject = subject_of("a = Neg (x) b = Exp (a) k = Cast <to = 7> (a) c = Reshape (b, k) y = Relu (c)")
    with open_lab() as lab:
        found = lab.values(subject, ["a", "b", "c", "y"])
    assert set(found) == {"a", "b"}
