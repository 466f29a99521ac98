"""`ep-harness golden record` and `verify`, on the CPU EP and on a fake onnxruntime of another release."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.values.value import tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import provenance

Call = Callable[..., tuple[int, str, str]]
AsJson = Callable[..., tuple[int, dict[str, Any]]]
HEAD = '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>'
SIGNATURE = "g (float[4] x) => (float[4] y, int32[4] k, float[4] z)"
MODEL = f"{HEAD} {SIGNATURE} {{ y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }}"
UNKNOWN = f"{HEAD} {SIGNATURE} {{ y = acme.Do(x) k = Cast<to=6>(x) z = Neg(x) }}"
RANDOM = f"{HEAD} g (float[4] x) => (float[4] y) {{ n = RandomNormalLike(x) y = Add(n, x) }}"


@pytest.mark.real_ep
def test_what_is_known_is_not_computed_again(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson
) -> None:
    matrix = write_matrix(a=MODEL, b=UNKNOWN)
    release = provenance()["onnxruntime"]
    code, out, _ = call("record", matrix)
    assert code == 0
    assert out.startswith(f"2 goldens of onnxruntime {release}: 2 computed now, 0 known before\n")
    assert "refused by the CPU EP; the refusal is the golden: 1\n" in out
    assert "      models/b.onnx\n" in out
    code, found = as_json("record", matrix)
    assert (code, found["computed"], found["known"]) == (0, 0, 2)
    assert [one["model"] for one in found["refused"]] == ["models/b.onnx"]
    assert found["provenance"] == provenance()


@pytest.mark.real_ep
def test_a_recording_is_read_as_a_folder_of_models(
    write_matrix: Callable[..., Path], call: Call, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=UNKNOWN), tmp_path / "recording"
    assert call("record", matrix, "--out", out)[0] == 0
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
    code, text, _ = call("verify", out)
    assert code == 0
    title, *table = text.splitlines()
    assert title.endswith(": 1 the same, 1 refused as before")
    assert [line.split()[-4:] for line in table] == [
        ["same", "agrees", "differs", "cannot"],
        ["1", "0", "0", "0"],
        ["1", "0", "0", "0"],
    ]
    assert [line[:24].strip() for line in table[1:]] == ["onnx.reference", "the CPU EP without o"]
    code, _, err = call("record", matrix, "--out", out)
    assert code == 2
    assert "the folder is not empty" in err


@pytest.mark.real_ep
@pytest.mark.skipif(os.name != "posix", reason="the fake is a shell script")
def test_each_output_that_moved_is_named(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson
) -> None:
    names = ["healthy", "zeros", "off_by_one", "wrong_shape", "segv_in_run", "error_in_create"]
    texts = {f"{number}_{name}": MODEL for number, name in enumerate(names)}
    matrix = write_matrix(**texts, **{"6_healthy": UNKNOWN, "7_error_in_create": UNKNOWN})
    assert call("record", matrix)[0] == 0
    code, found = as_json("verify", matrix, "--target", "fake")
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

    code, out, _ = call("verify", matrix, "--target", "fake")
    assert code == 1
    title = " ".join(out.split("  moved  ")[0].split())
    assert title == (
        f"onnxruntime {provenance()['onnxruntime']} -> 1.30.0: 1 the same, 3 moved, 1 now refused, "
        "1 now lost, 1 refused before, computed now, 1 refused as before"
    )
    assert "the CPU EP crashed: SIGSEGV\n      models/4_segv_in_run.onnx\n" in out

    # Without what changed, nothing has moved.
    assert as_json("verify", matrix, "--target", "fake", "--model", "0_*")[0] == 0
    assert as_json("verify", matrix)[0] == 0


@pytest.mark.real_ep
def test_goldens_of_every_release_are_compared(
    write_matrix: Callable[..., Path], call: Call, tmp_path: Path
) -> None:
    matrix = write_matrix(a=MODEL)
    assert call("record", matrix)[0] == 0
    case = load_case(open_folder(tmp_path / "models"), "a.onnx", {})
    golden = GoldenStore(provenance()).load(case)
    assert golden is not None
    ((y, k, z),) = golden.outputs
    nearly = tensor(np.nextafter(z[1].array, np.float32(9)))  # type: ignore[union-attr]
    earlier = {**provenance(), "onnxruntime": "1.2.3", "processor": "an old one"}
    GoldenStore(earlier).save(case, Golden(status="ok", outputs=((y, k, ("z", nearly)),)))
    code, out, _ = call("verify", matrix)
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
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    matrix = write_matrix(r=RANDOM)
    code, found = as_json("record", matrix, "--out", tmp_path / "out")
    assert "draws numbers" in found["disputed"][0]["message"]
    for what in (matrix, tmp_path / "out"):
        code, out, _ = call("verify", what)
        assert code == 0
        assert "0 the same, 1 moved, not repeatable\n" in out


@pytest.mark.real_ep
def test_an_altered_recording_is_reported_and_not_used(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=MODEL, c=MODEL), tmp_path / "recording"
    assert call("record", matrix, "--out", out)[0] == 0
    changed = out / "models" / "a" / "test_data_set_0" / "output_0.pb"
    changed.write_bytes(changed.read_bytes()[:-1] + b"\x01")
    (out / "models" / "b" / "test_data_set_0" / "output_2.pb").unlink()
    code, found = as_json("verify", out)
    assert code == 1
    assert found["altered"] == [
        "models/a/test_data_set_0/output_0.pb has changed",
        "models/b/test_data_set_0/output_2.pb is missing",
    ]
    assert [(one["model"], one["outcome"]) for one in found["checks"]] == [("models/c.onnx", "same")]


@pytest.mark.real_ep
def test_a_recording_without_its_outputs_is_never_unmoved(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    out = tmp_path / "recording"
    assert call("record", write_matrix(a=MODEL), "--out", out)[0] == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    for name in [name for name in manifest["models"][0]["files"] if "output" in name]:
        del manifest["models"][0]["files"][name]
        (out / "models" / "a" / name).unlink()
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    code, found = as_json("verify", out)
    assert (code, [one["outcome"] for one in found["checks"]]) == (1, ["moved"])


@pytest.mark.real_ep
def test_what_is_not_recorded_is_not_verified(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson
) -> None:
    matrix = write_matrix(a=MODEL, b=RANDOM)
    code, _, err = call("verify", matrix)
    assert code == 2
    assert f"the cache has no golden of its 2 models\n    ep-harness golden record {matrix}\n" in err
    assert call("record", matrix, "--model", "a.onnx")[0] == 0
    code, found = as_json("verify", matrix)
    assert (code, found["unrecorded"]) == (0, ["models/b.onnx"])


@pytest.mark.real_ep
def test_an_unreadable_model_and_a_missing_onnxruntime_are_reported(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    matrix = write_matrix(a=MODEL, b=MODEL)
    (tmp_path / "models" / "b.onnx").write_bytes(b"no model")
    code, found = as_json("record", matrix)
    assert code == 3
    assert (found["computed"], [one["model"] for one in found["unasked"]]) == (1, ["models/b.onnx"])
    broken = tmp_path / "broken.toml"
    text = matrix.read_text(encoding="utf-8").replace(str(tmp_path / "python"), str(tmp_path / "nothing"))
    broken.write_text(text, encoding="utf-8")
    code, out, _ = call("verify", broken, "--target", "fake", "--model", "a.onnx")
    assert code == 3
    assert "not computed: 1\n    the CPU EP is not there: " in out


@pytest.mark.real_ep
def test_a_runtime_that_cannot_be_built_is_reported(
    fake_uv: Path, write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    assert fake_uv.exists()
    matrix, out = write_matrix(a=MODEL), tmp_path / "recording"
    assert call("record", matrix, "--out", out)[0] == 0
    code, found = as_json("verify", out, "--packages", "nosuch")
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
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_matrix: Callable[..., Path],
) -> None:
    matrix = write_matrix(a=MODEL)
    matrix.rename(tmp_path / "models" / "m.toml")
    text = (tmp_path / "models" / "m.toml").read_text(encoding="utf-8").replace('["models"]', '["."]')
    (tmp_path / "models" / "m.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") <= 3
