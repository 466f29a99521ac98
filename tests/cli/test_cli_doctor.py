"""What doctor prints, and the matrix that init writes."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import doctor, init, main
from harness.cli.matrix_text import matrix_of
from harness.plan.matrix import read_matrix
from harness.studies.usable_providers import DoctorRow
from tests.kit import Capture, make_matrix

CPU = DoctorRow(
    provider="CPUExecutionProvider",
    state="usable",
    nodes=2,
    versions={"onnxruntime": "1.31.1"},
    devices=({"device": {"type": "CPU", "vendor": "Intel"}, "metadata": {}},),
)
QNN = DoctorRow(
    provider="QNNExecutionProvider",
    state="usable",
    nodes=4,
    plugin="onnxruntime_qnn",
    options={"backend_type": "htp"},
    remarks=("the HTP: backend_type=htp",),
)
AZURE = DoctorRow(
    provider="AzureExecutionProvider",
    state="usable",
    nodes=0,
    advice="do not count on it",
    remarks=("it computed 0 nodes",),
)
CUDA = DoctorRow(
    provider="CUDAExecutionProvider",
    target="cuda-1.31.1",
    state="unavailable",
    cause="library_missing",
    reason="libcublasLt.so.13 is missing: onnxruntime made the session without CUDAExecutionProvider",
    advice="install what brings libcublasLt.so.13",
)
NNAPI = DoctorRow(
    provider="NnapiExecutionProvider",
    state="unavailable",
    cause="not_in_build",
    reason="not in this onnxruntime 1.31.1; for Android only",
    advice="run on Android",
)
ROWS = (CUDA, AZURE, CPU, NNAPI, QNN)

Examined = Callable[..., None]


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> Examined:
    """Have doctor find these rows."""

    def find(*rows: DoctorRow) -> None:
        for module in (doctor, init):
            monkeypatch.setattr(module, "examine", lambda _matrix, _tell, _plugins=(): rows)

    return find


def test_a_page_has_tables_remarks_and_steps(examined: Examined, capsys: Capture) -> None:
    examined(*ROWS)
    assert main(["doctor"]) == 0
    assert (
        capsys.readouterr().out
        == """\
target                         state       what
cuda-1.31.1                    unavailable library_missing: libcublasLt.so.13

provider                       state       what
CPUExecutionProvider           usable      CPU Intel
QNNExecutionProvider           usable      backend_type=htp
AzureExecutionProvider         usable      0 nodes: computes nothing itself
NnapiExecutionProvider         unavailable not_in_build; for Android

remarks
  QNNExecutionProvider: the HTP: backend_type=htp
  AzureExecutionProvider: it computed 0 nodes

next steps
  AzureExecutionProvider: do not count on it
  cuda-1.31.1: install what brings libcublasLt.so.13 (library_missing:
    libcublasLt.so.13 is missing: onnxruntime made the session without
    CUDAExecutionProvider)
  NnapiExecutionProvider: run on Android

2 of 5 work here; --json has versions, devices and reasons
"""
    )


def test_json_has_the_promised_keys(examined: Examined, capsys: Capture) -> None:
    examined(*ROWS)
    assert main(["doctor", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["provider"] for row in rows] == [row.provider for row in ROWS]
    for row in rows:
        assert {"provider", "state", "cause", "advice", "versions", "devices"} <= row.keys()
    assert rows[1]["nodes"] == 0
    assert rows[3]["nodes"] is None


def test_a_wrong_matrix_is_reported_before_anything_is_tried(tmp_path: Path, capsys: Capture) -> None:
    assert main(["doctor", str(tmp_path / "gone.toml")]) == 2
    assert "no such file" in capsys.readouterr().err


@given(st.lists(st.text(), min_size=7, max_size=7))
def test_no_text_breaks_the_page(texts: list[str]) -> None:
    provider, target, cause, reason, advice, remark, vendor = texts
    device: dict[str, Any] = {"device": {"type": vendor, "vendor": vendor}, "metadata": {}}
    bad = DoctorRow(
        provider=provider,
        target=target,
        state="unavailable",
        cause=cause,
        reason=f"{reason} is missing: {reason}",
        advice=advice,
        remarks=(remark,),
    )
    good = DoctorRow(
        provider=provider, target=target, state="usable", nodes=1, devices=(device,), options={vendor: reason}
    )
    lines = list(doctor.page([bad, good]))
    assert max(map(len, lines)) <= 80
    assert not any(character in line for line in lines for character in "\n\r\x1b\x07\u202e")


def test_init_writes_what_a_run_takes(examined: Examined, tmp_path: Path, capsys: Capture) -> None:
    examined(*ROWS[1:])
    out = tmp_path / "new.toml"
    assert main(["init", "--out", str(out)]) == 0
    assert "2 targets (cpu, qnn)" in capsys.readouterr().out
    matrix = read_matrix(out)
    assert [target.name for target in matrix.targets] == ["cpu", "qnn"]
    assert matrix.targets[0].required
    assert matrix.targets[1].plugin == "onnxruntime_qnn"
    assert matrix.targets[1].options == {"backend_type": "htp"}
    assert "# AzureExecutionProvider works, and computes nothing itself." in out.read_text(encoding="utf-8")


def test_init_plans_the_models_that_are_there(examined: Examined, tmp_path: Path, capsys: Capture) -> None:
    examined(*ROWS[1:])
    for name in ("models/a.onnx", "more/deep/b.onnx", ".hidden/c.onnx", "env/lib/d.onnx", "runs/r/e.onnx"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    (tmp_path / "env" / "pyvenv.cfg").touch()
    for name in ("run.json", "records.jsonl"):
        (tmp_path / "runs" / "r" / name).touch()
    out = tmp_path / "new.toml"
    assert main(["init", "--out", str(out)]) == 0
    assert "models   2 models in models, more" in capsys.readouterr().out
    matrix = read_matrix(out)
    assert (matrix.models.folders, matrix.models.suites) == (("models", "more"), ())
    assert len(matrix.latency) == 1
    (tmp_path / "f.onnx").touch()
    out.unlink()
    assert main(["init", "--out", str(out)]) == 0
    # All of them, but neither those of a virtual environment nor those that a run has written.
    assert "models   4 models in ." in capsys.readouterr().out


def test_init_overwrites_nothing(examined: Examined, tmp_path: Path, capsys: Capture) -> None:
    examined(*ROWS)
    out = tmp_path / "there.toml"
    out.write_text("mine", encoding="utf-8")
    assert main(["init", "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "mine"


def test_init_needs_a_folder_and_a_provider(examined: Examined, tmp_path: Path, capsys: Capture) -> None:
    examined(*ROWS)
    assert main(["init", "--out", str(tmp_path / "gone" / "m.toml")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    examined(
        DoctorRow(
            provider="CPUExecutionProvider",
            state="unavailable",
            cause="not_installed",
            reason="no onnxruntime in python",
            advice="pip install onnxruntime",
        )
    )
    assert main(["init", "--out", str(tmp_path / "m.toml")]) == 2
    shown = capsys.readouterr().err
    assert "no onnxruntime in python" in shown
    assert "pip install onnxruntime" in shown
    assert list(tmp_path.iterdir()) == []


# A package may call its provider anything, in texts that a matrix can hold.
WORD = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=30)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(WORD, WORD, WORD, WORD), min_size=1, max_size=3))
def test_any_name_makes_a_matrix(names: list[tuple[str, str, str, str]]) -> None:
    rows = [
        DoctorRow(
            provider=f"p{provider}",  # one that is known takes no other options than its own
            state="usable",
            nodes=1,
            plugin=f"p{plugin}",
            options={key: value},
            remarks=(value,),
            devices=({"device": {"type": value, "vendor": key}, "metadata": {}},) * 2,
        )
        for provider, plugin, key, value in names
    ]
    table = tomllib.loads("\n".join(matrix_of(rows)))
    assert [target["provider"] for target in table["target"]] == [row.provider for row in rows]
    assert [target["options"] for target in table["target"]] == [row.options for row in rows]
    assert len({target["name"] for target in table["target"]}) == len(rows)
    make_matrix(table)
