"""`ep-harness golden` as people call it: on the CPU EP, and on a fake onnxruntime of another release."""

import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from harness.cli.main import main
from harness.core.value import tensor
from harness.corpus.cache import ENVIRONMENT
from harness.corpus.case import load_case
from harness.corpus.suites import open_folder
from harness.golden.golden import Golden
from harness.golden.provenance import provenance
from harness.golden.store import GoldenStore

Capture = pytest.CaptureFixture[str]
FAKE = Path(__file__).parents[1] / "engine" / "fake_onnxruntime"
HEAD = '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>'
SIGNATURE = "g (float[4] x) => (float[4] y, int32[4] k, float[4] z)"
MODEL = f"{HEAD} {SIGNATURE} {{ y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }}"
UNKNOWN = f"{HEAD} {SIGNATURE} {{ y = acme.Do(x) k = Cast<to=6>(x) z = Neg(x) }}"
RANDOM = f"{HEAD} g (float[4] x) => (float[4] y) {{ n = RandomNormalLike(x) y = Add(n, x) }}"


@pytest.fixture(autouse=True)
def _own_goldens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))


def call(capsys: Capture, *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in ("golden", *arguments)])
    printed = capsys.readouterr()
    if "--json" not in arguments:
        assert all(len(line) <= 80 or line.startswith("wrote ") for line in printed.out.splitlines())
    return code, printed.out, printed.err


def as_json(capsys: Capture, *arguments: object) -> tuple[int, dict[str, Any]]:
    code, out, _ = call(capsys, *arguments, "--json")
    return code, json.loads(out)


@pytest.fixture
def write_matrix(tmp_path: Path) -> Callable[..., Path]:
    """Write models by file name and text, and a matrix over them with a target of a fake onnxruntime."""

    def write(**models: str) -> Path:
        (tmp_path / "models").mkdir()
        for name, text in models.items():
            onnx.save(onnx.parser.parse_model(text), tmp_path / "models" / f"{name}.onnx")
        program = tmp_path / "python"
        fake = f"PYTHONPATH={shlex.quote(str(FAKE))} PYTHONDONTWRITEBYTECODE=1 FAKE_VERSION=1.30.0"
        program.write_text(f'#!/bin/sh\n{fake} exec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        matrix = tmp_path / "m.toml"
        matrix.write_text(
            'schema = 1\n[models]\nfolders = ["models"]\n'
            '[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n'
            '[[target]]\nname = "fake"\nprovider = "CPUExecutionProvider"\n'
            f"runtime = {{ python = {json.dumps(str(program))} }}\n",
            encoding="utf-8",
        )
        return matrix

    return write


@pytest.mark.real_ep
def test_what_is_known_is_not_computed_again(write_matrix: Callable[..., Path], capsys: Capture) -> None:
    matrix = write_matrix(a=MODEL, b=UNKNOWN)
    release = provenance()["onnxruntime"]
    code, out, _ = call(capsys, "record", matrix)
    assert code == 0
    assert out.startswith(f"2 goldens of onnxruntime {release}: 2 computed now, 0 known before\n")
    assert "refused by the CPU EP; the refusal is the golden: 1\n" in out
    assert "      models/b.onnx\n" in out
    code, found = as_json(capsys, "record", matrix)
    assert (code, found["computed"], found["known"]) == (0, 0, 2)
    assert [one["model"] for one in found["refused"]] == ["models/b.onnx"]
    assert found["provenance"] == provenance()


@pytest.mark.real_ep
def test_a_recording_is_read_as_a_folder_of_models(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=UNKNOWN), tmp_path / "recording"
    assert call(capsys, "record", matrix, "--out", out)[0] == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["provenance"] == provenance()
    assert [(one["folder"], one["status"], one["seed"]) for one in manifest["models"]] == [
        ("models/a", "ok", 0),
        ("models/b", "refused", 0),
    ]
    suite = open_folder(out)
    (data_set,) = load_case(suite, "models/a/model.onnx", {}).data_sets
    assert [name for name, _ in data_set.inputs] == ["x"]
    assert [name for name, _ in data_set.expected] == ["y", "k", "z"]
    assert load_case(suite, "models/b/model.onnx", {}).data_sets[0].expected == ()
    code, text, _ = call(capsys, "verify", out)
    assert code == 0
    title, *table = text.splitlines()
    assert title.endswith(": 1 the same, 1 refused as before")
    assert [line.split()[-4:] for line in table] == [
        ["same", "agrees", "differs", "cannot"],
        ["1", "0", "0", "0"],
        ["1", "0", "0", "0"],
    ]
    assert [line[:24].strip() for line in table[1:]] == ["onnx.reference", "the CPU EP without o"]
    code, _, err = call(capsys, "record", matrix, "--out", out)
    assert code == 2
    assert "the folder is not empty" in err


@pytest.mark.real_ep
@pytest.mark.skipif(os.name != "posix", reason="the fake is a shell script")
def test_each_output_that_moved_is_named(write_matrix: Callable[..., Path], capsys: Capture) -> None:
    names = ["healthy", "zeros", "off_by_one", "wrong_shape", "segv_in_run", "error_in_create"]
    texts = {f"{number}_{name}": MODEL for number, name in enumerate(names)}
    matrix = write_matrix(**texts, **{"6_healthy": UNKNOWN, "7_error_in_create": UNKNOWN})
    assert call(capsys, "record", matrix)[0] == 0
    code, found = as_json(capsys, "verify", matrix, "--target", "fake")
    assert (code, found["unasked"]) == (1, [])
    assert found["onnxruntime"] == "1.30.0"
    assert {one["model"]: one["outcome"] for one in found["checks"]} == {
        "models/0_healthy.onnx": "same",
        "models/1_zeros.onnx": "moved",
        "models/2_off_by_one.onnx": "moved",
        "models/3_wrong_shape.onnx": "moved",
        "models/4_segv_in_run.onnx": "lost",
        "models/5_error_in_create.onnx": "refused",
        "models/6_healthy.onnx": "computes",
        "models/7_error_in_create.onnx": "refused_before_too",
    }
    assert all(one["since"] == provenance() for one in found["checks"])
    moved = {one["model"]: one["movements"] for one in found["checks"] if one["movements"]}
    assert {model: [one["metrics"]["name"] for one in outputs] for model, outputs in moved.items()} == {
        "models/1_zeros.onnx": ["z"],
        "models/2_off_by_one.onnx": ["k"],
        "models/3_wrong_shape.onnx": ["y"],
    }
    assert moved["models/1_zeros.onnx"][0]["metrics"]["max_rel"] == 1.0
    assert moved["models/2_off_by_one.onnx"][0]["metrics"]["max_abs"] == 1.0
    assert "got float32[2, 2], golden is float32[4]" in moved["models/3_wrong_shape.onnx"][0]["message"]

    code, out, _ = call(capsys, "verify", matrix, "--target", "fake")
    assert code == 1
    title = " ".join(out.split("  moved  ")[0].split())
    assert title == (
        f"onnxruntime {provenance()['onnxruntime']} -> 1.30.0: 1 the same, 3 moved, 1 now refused, "
        "1 now lost, 1 refused before, computed now, 1 refused as before"
    )
    assert "the CPU EP crashed: SIGSEGV\n      models/4_segv_in_run.onnx\n" in out

    # Without what changed, nothing has moved.
    assert as_json(capsys, "verify", matrix, "--target", "fake", "--model", "0_*")[0] == 0
    assert as_json(capsys, "verify", matrix)[0] == 0


@pytest.mark.real_ep
def test_every_release_that_recorded_is_held_against(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix = write_matrix(a=MODEL)
    assert call(capsys, "record", matrix)[0] == 0
    case = load_case(open_folder(tmp_path / "models"), "a.onnx", {})
    golden = GoldenStore(provenance()).load(case)
    assert golden is not None
    ((y, k, z),) = golden.outputs
    nearly = tensor(np.nextafter(z[1].array, np.float32(9)))  # type: ignore[union-attr]
    earlier = {**provenance(), "onnxruntime": "1.2.3", "processor": "an old one"}
    GoldenStore(earlier).save(case, Golden(status="ok", outputs=((y, k, ("z", nearly)),)))
    code, out, _ = call(capsys, "verify", matrix)
    assert code == 1
    now = provenance()["onnxruntime"]
    assert f"onnxruntime {now} -> {now}: 1 the same\n" in out
    assert f"onnxruntime 1.2.3 -> {now}: 0 the same, 1 moved\n  recorded with processor an old one\n" in out
    (row,) = [line.split() for line in out.splitlines() if line.startswith("    z ")]
    name, max_abs, max_rel, bits, headroom = row
    assert name == "z"
    assert 0 < float(max_abs) <= 2.4e-7
    assert 0 < float(max_rel) <= 1.2e-7
    assert float(bits) > 22
    assert float(headroom) < 0.01


@pytest.mark.real_ep
def test_what_is_random_moves_without_being_counted(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix = write_matrix(r=RANDOM)
    code, found = as_json(capsys, "record", matrix, "--out", tmp_path / "out")
    assert "draws numbers" in found["disputed"][0]["message"]
    for what in (matrix, tmp_path / "out"):
        code, out, _ = call(capsys, "verify", what)
        assert code == 0
        assert "0 the same, 1 moved, not repeatable\n" in out


@pytest.mark.real_ep
def test_an_altered_recording_is_told_and_not_computed_with(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=MODEL, c=MODEL), tmp_path / "recording"
    assert call(capsys, "record", matrix, "--out", out)[0] == 0
    changed = out / "models" / "a" / "test_data_set_0" / "output_0.pb"
    changed.write_bytes(changed.read_bytes()[:-1] + b"\x01")
    (out / "models" / "b" / "test_data_set_0" / "output_2.pb").unlink()
    code, found = as_json(capsys, "verify", out)
    assert code == 1
    assert found["altered"] == [
        "models/a/test_data_set_0/output_0.pb has changed",
        "models/b/test_data_set_0/output_2.pb is missing",
    ]
    assert [(one["model"], one["outcome"]) for one in found["checks"]] == [("models/c.onnx", "same")]


@pytest.mark.real_ep
def test_a_recording_without_its_outputs_is_never_unmoved(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    out = tmp_path / "recording"
    assert call(capsys, "record", write_matrix(a=MODEL), "--out", out)[0] == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    for name in [name for name in manifest["models"][0]["files"] if "output" in name]:
        del manifest["models"][0]["files"][name]
        (out / "models" / "a" / name).unlink()
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    code, found = as_json(capsys, "verify", out)
    assert (code, [one["outcome"] for one in found["checks"]]) == (1, ["moved"])


@pytest.mark.real_ep
def test_what_is_not_recorded_is_not_verified(write_matrix: Callable[..., Path], capsys: Capture) -> None:
    matrix = write_matrix(a=MODEL, b=RANDOM)
    code, _, err = call(capsys, "verify", matrix)
    assert code == 2
    assert f"the cache has no golden of its 2 models\n    ep-harness golden record {matrix}\n" in err
    assert call(capsys, "record", matrix, "--model", "a.onnx")[0] == 0
    code, found = as_json(capsys, "verify", matrix)
    assert (code, found["unrecorded"]) == (0, ["models/b.onnx"])


@pytest.mark.real_ep
def test_a_model_that_cannot_be_read_and_a_missing_onnxruntime_are_told(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix = write_matrix(a=MODEL, b=MODEL)
    (tmp_path / "models" / "b.onnx").write_bytes(b"no model")
    code, found = as_json(capsys, "record", matrix)
    assert code == 3
    assert (found["computed"], [one["model"] for one in found["unasked"]]) == (1, ["models/b.onnx"])
    broken = tmp_path / "broken.toml"
    text = matrix.read_text(encoding="utf-8").replace(str(tmp_path / "python"), str(tmp_path / "nothing"))
    broken.write_text(text, encoding="utf-8")
    code, out, _ = call(capsys, "verify", broken, "--target", "fake", "--model", "a.onnx")
    assert code == 3
    assert "not computed: 1\n    the CPU EP is not there: " in out


@pytest.mark.real_ep
def test_a_runtime_that_cannot_be_built_is_told(
    fake_uv: Path, write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    assert fake_uv.exists()
    matrix, out = write_matrix(a=MODEL), tmp_path / "recording"
    assert call(capsys, "record", matrix, "--out", out)[0] == 0
    code, found = as_json(capsys, "verify", out, "--packages", "nosuch")
    assert (code, found["checks"]) == (3, [])
    assert "the CPU EP is not there: No solution found" in found["unasked"][0]["message"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("verify", "m.toml"), "no such file"),
        (("verify", "."), "this is not a recording, or an incomplete one"),
        (("verify", ".", "--target", "cpu"), "a recording has no targets"),
        (("verify", "models/m.toml", "--target", "cpy"), "did you mean 'cpu'"),
        (("verify", "models/m.toml", "--python", "3.11"), "name --packages"),
        (("verify", "models/m.toml", "--target", "cpu", "--packages", "a"), "give one of them"),
        (("record", "models/m.toml", "--model", "nothing"), "matches 'nothing'"),
    ],
)
def test_a_wrong_argument_is_two_lines(
    arguments: tuple[str, ...],
    says: str,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_matrix: Callable[..., Path],
) -> None:
    matrix = write_matrix(a=MODEL)
    matrix.rename(tmp_path / "models" / "m.toml")
    text = (tmp_path / "models" / "m.toml").read_text(encoding="utf-8").replace('["models"]', '["."]')
    (tmp_path / "models" / "m.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") <= 3


@pytest.mark.real_ep
def test_prune_removes_what_nobody_uses(write_matrix: Callable[..., Path], capsys: Capture) -> None:
    matrix = write_matrix(a=MODEL, b=UNKNOWN)
    assert call(capsys, "prune")[1] == "nothing to remove\n"
    assert call(capsys, "record", matrix)[0] == 0
    assert as_json(capsys, "prune") == (0, {"removed": 0, "nbytes": 0, "by": {}, "models": 0})
    code, out, _ = call(capsys, "prune", "--all")
    assert code == 0
    # The golden of one model, what two references say of it, and the refusal of the other.
    assert sorted(out.splitlines()[:-1]) == [
        f"removed        1  onnx.reference {onnx.__version__}",
        f"removed        3  onnxruntime {provenance()['onnxruntime']}",
    ]
    assert call(capsys, "verify", matrix)[0] == 2
    assert as_json(capsys, "record", matrix)[1]["computed"] == 2


@pytest.mark.real_ep
def test_others_are_held_against_each_golden(
    write_matrix: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=UNKNOWN), tmp_path / "recording"
    model = onnx.load(tmp_path / "models" / "a.onnx")
    data_set = tmp_path / "models" / "a" / "test_data_set_0"
    data_set.mkdir(parents=True)
    x = np.array([-1, 0, 1, 2], np.float32)
    for name, array in (("input_0", x), ("output_0", np.maximum(x, 0)), ("output_2", x)):
        tensor_proto = onnx.numpy_helper.from_array(array)
        (data_set / f"{name}.pb").write_bytes(tensor_proto.SerializeToString())
    assert model.graph.output[2].name == "z"
    (data_set / "output_1.pb").write_bytes(
        onnx.numpy_helper.from_array(x.astype(np.int32)).SerializeToString()
    )
    code, found = as_json(capsys, "record", matrix, "--out", out)
    assert code == 0
    expected, reference, unoptimized = found["cross_checks"]["models/a.onnx"]
    assert (expected["by"], expected["result"]) == ("the expected data", "differs")
    assert expected["message"] == "3 of 4 elements of 'z', by 4 at most"
    assert reference == {"by": "onnx.reference", "result": "same", "headroom": 0.0, "message": ""}
    assert (unoptimized["by"], unoptimized["result"]) == ("the CPU EP without optimizations", "same")
    assert found["cross_checks"]["models/b.onnx"] == []
    kept = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["models"]
    assert kept[0]["cross_checks"] == found["cross_checks"]["models/a.onnx"]
    for what in (out, matrix):
        code, told = as_json(capsys, "verify", what)
        assert (code, told["cross_checks"]["models/a.onnx"]) == (0, kept[0]["cross_checks"])
    text = call(capsys, "verify", out)[1]
    assert "  the expected data differs: 1\n" in text
    assert "      models/a.onnx\n        3 of 4 elements of 'z', by 4 at most\n" in text


@pytest.mark.real_ep
def test_a_reference_that_cannot_answer_says_why(write_matrix: Callable[..., Path], capsys: Capture) -> None:
    softmax = f"{HEAD.replace('17', '11')} g (float[2, 2] x) => (float[2, 2] y) {{ y = Softmax(x) }}"
    code, found = as_json(capsys, "record", write_matrix(a=softmax))
    assert code == 0
    (reference, _) = found["cross_checks"]["models/a.onnx"]
    assert reference["result"] == "cannot"
    assert "Softmax of opset 11" in reference["message"]


@pytest.mark.real_ep
def test_the_goldens_that_are_shipped_are_computed_here_too(capsys: Capture) -> None:
    code, found = as_json(capsys, "verify")
    assert (found["altered"], found["unasked"], found["complete"]) == ([], [], True)
    assert len(found["checks"]) == 13
    # Which kernels compute is a matter of release and processor; what they give lies within the tolerance.
    assert {check["outcome"] for check in found["checks"]} <= {"same", "moved"}
    moved = [movement for check in found["checks"] for movement in check["movements"]]
    assert [movement["message"] for movement in moved if movement["message"]] == []
    assert code == bool(moved)


@pytest.mark.compat
def test_another_release_computes(capsys: Capture, tmp_path: Path) -> None:
    matrix, out = tmp_path / "m.toml", tmp_path / "recording"
    matrix.write_text(
        'schema = 1\n[models]\nsuites = ["zoo"]\n[[target]]\nname = "t"\nprovider = "CPUExecutionProvider"\n',
        encoding="utf-8",
    )
    assert call(capsys, "record", matrix, "--model", "zoo/mnist-small-op12", "--out", out)[0] == 0
    code, found = as_json(capsys, "verify", out, "--packages", "onnxruntime==1.24.1")
    if code == 3:
        pytest.skip(found["unasked"][0]["message"])
    assert found["onnxruntime"] == "1.24.1"
    (check,) = found["checks"]
    # Whether it takes other kernels than the one that recorded is a matter of the processor.
    assert (code, check["outcome"]) in {(0, "same"), (1, "moved")}
    assert [one["metrics"]["name"] for one in check["movements"]] == ["Plus214_Output_0"] * code
