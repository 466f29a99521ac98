"""`ep-harness levels` and `ep-harness advise` as people call them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import onnx.parser
import pytest

from harness.annex.advise import command_advise as cli_advise
from harness.annex.advise.command_levels import table
from harness.annex.advise.search_result import TriedCandidate
from harness.cli.main import main
from harness.cli.targets import ProviderRequest, wanted_matrix
from harness.core.records.graph_levels import (
    GraphChange,
    Levels,
    LevelStep,
    OperatorRow,
    OperatorType,
    TargetShare,
    TargetShares,
)
from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from tests.kit import Capture

MNIST = "zoo/mnist-small-op12"
CPU = "CPUExecutionProvider"


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.real_ep
def test_levels_prints_tables_and_writes_a_page(capsys: Capture, tmp_path: Path) -> None:
    code, out, err = run(capsys, "levels", MNIST, CPU, "--out", str(tmp_path / "page"))
    assert code == 0
    assert "basic        Conv + Add → Conv (2 times)\n             Reshape → a constant\n" in out
    assert "extended     Conv + Relu → com.microsoft.FusedConv (2 times)" in out
    assert max(map(len, out.splitlines())) <= 80
    assert str(tmp_path / "page" / "levels.html") in err
    assert "FusedConv" in (tmp_path / "page" / "levels.html").read_text(encoding="utf-8")


@pytest.mark.real_ep
def test_levels_as_json(capsys: Capture) -> None:
    code, out, _ = run(capsys, "levels", MNIST, CPU, "--json")
    found = json.loads(out)
    assert code == 0
    assert [step["level"] for step in found["steps"]] == [
        "disabled",
        "basic",
        "extended",
        "layout",
        "all",
        "basic",
        "extended",
    ]
    assert found["nodes"] == 12


@pytest.fixture
def interrupt_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have Ctrl-C pressed once so many candidates were tried: the whole search would take too long here."""
    shown: list[TriedCandidate] = []

    def after(count: int) -> None:
        show = cli_advise.show_tried

        def show_then_interrupt(one: TriedCandidate) -> None:
            show(one)
            shown.append(one)
            if len(shown) == count:
                raise KeyboardInterrupt

        monkeypatch.setattr(cli_advise, "show_tried", show_then_interrupt)

    return after


@pytest.mark.real_ep
def test_advise_as_json_with_code_that_runs(
    capsys: Capture, tmp_path: Path, interrupt_after: Callable[[int], None]
) -> None:
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'schema = 1\n[models]\nsuites = ["zoo"]\n'
        f'[[target]]\nname = "cpu"\nprovider = "{CPU}"\n'
        '[[target]]\nname = "gone"\nprovider = "QNNExecutionProvider"\nplugin = "no_such_package"\n',
        encoding="utf-8",
    )
    interrupt_after(2)
    code, out, _ = run(capsys, "advise", MNIST, str(matrix), "--budget", "300", "--json")
    found = json.loads(out)
    assert code == 130
    assert found["stopped_by"] == "interrupt"
    assert [one["configuration"] for one in found["ranked"]] == ["cpu"]
    assert found["ranked"][0]["p50_ms"] > 0
    assert [one["configuration"] for one in found["fell_out"]] == ["gone"]
    assert found["fell_out"][0]["why"].startswith("unavailable: plugin package 'no_such_package'")
    assert found["not_tried"]
    assert found["winner"] == "cpu"
    script = tmp_path / "pasted.py"
    script.write_text(found["code"], encoding="utf-8")
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)


@pytest.mark.real_ep
def test_advise_for_people(capsys: Capture, interrupt_after: Callable[[int], None]) -> None:
    interrupt_after(3)
    code, out, err = run(capsys, "advise", MNIST, CPU, "--budget", "300")
    assert code == 130
    # On a busy machine none is named, and there is code all the same.
    assert "winner: cpu" in out or "no winner: " in out
    assert "not tried: " in out
    assert "session = ort.InferenceSession(" in out
    table, _, _ = out.partition("import onnxruntime")
    assert max(map(len, table.splitlines())) <= 80
    assert err.count("tried        cpu") == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("levels", "no.onnx"), "no such model"),
        (("advise", MNIST, CPU, "--budget", "0"), "--budget"),
        (("advise", MNIST, "--option", "a=b"), "none is named"),
        (("levels", MNIST, "CPUExecutionProvder"), "did you mean 'CPUExecutionProvider'"),
        (("levels", MNIST, "no.toml"), "no such file"),
        (("levels", MNIST, CPU, "--option", "novalue"), "expected KEY=VALUE"),
    ],
)
def test_a_wrong_argument_is_two_lines(arguments: tuple[str, ...], says: str, capsys: Capture) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") <= 3


def test_a_provider_makes_a_matrix_with_its_options() -> None:
    request = ProviderRequest(provider=CPU, options=["x=1"], device=["type=CPU"])
    with pytest.raises(UsageError, match="--option x"):
        wanted_matrix(request)
    matrix = wanted_matrix(ProviderRequest(provider=CPU, device=["type=CPU"]))
    (target,) = matrix.targets
    assert (target.name, target.device) == ("cpu", {"type": "CPU"})


def test_axes_of_a_matrix_become_those_of_its_targets(tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(
        'schema = 1\n[models]\nsuites = ["zoo"]\n[axes]\n"option.a" = ["1", "2"]\n'
        '[[target]]\nname = "t"\nprovider = "MyExecutionProvider"\nplugin = "x"\n'
        'axes = { "option.b" = ["3"] }\n',
        encoding="utf-8",
    )
    matrix = wanted_matrix(ProviderRequest(provider=str(file)))
    assert matrix.axes == {}
    assert matrix.targets[0].axes == {"option.a": ("1", "2"), "option.b": ("3",)}


def test_a_model_that_onnxruntime_refuses_has_no_graph(capsys: Capture, tmp_path: Path) -> None:
    head = '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>'
    model = onnx.parser.parse_model(f"{head} g (float[1] x) => (float[1] y) {{ y = acme.Do(x) }}")
    onnx.save(model, tmp_path / "m.onnx")
    code, out, _ = run(capsys, "levels", str(tmp_path / "m.onnx"), CPU)
    assert code == 1
    assert out.count("no graph: disabled, basic, extended, layout, all, ORT basic, ORT extended") == 1
    assert "unsupported: " in out
    assert "no change from" not in out


def test_hostile_names_stay_in_their_place() -> None:
    name = "Ev\x1b[31mil\nrow\u202e" + "x" * 100
    operator = OperatorType(name, name)
    step = LevelStep(
        level="basic",
        form="onnx",
        nodes=1,
        against="model",
        changes=(GraphChange(kind="fused", before=((operator, 2),), after=((operator, 1),), times=1),),
    )
    share = TargetShare(verdict=Verdict.ERROR, reason=name)
    found = Levels(
        model=name,
        opsets={name: 1},
        nodes=2,
        nested=0,
        onnxruntime=name,
        steps=(step,),
        operators=(OperatorRow(operator=operator, in_model=2, counts=(1,)),),
        targets=(TargetShares(target=name, provider="P", shares=(share,)),),
    )
    for line in table(found):
        assert line.isprintable()
    assert sum("row" in line and line.strip().endswith("1") for line in table(found)) == 1
