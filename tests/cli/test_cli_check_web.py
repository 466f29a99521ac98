"""`ep-harness check` with a browser or Node.js: names, what is missing, and the matrix that it writes."""

import tomllib
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.web import PACKAGES, SOFTWARE_GPU
from harness.corpus.caches.cache import ENVIRONMENT
from harness.plan.matrix import read_matrix
from tests.programs import write_program


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stand-in of Node.js and of Chromium, the only ones that are found; npm is missing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, answer in (("node", "v20.1.2"), ("chromium", "Chromium 1")):
        write_program(folder / name, f"#!/bin/sh\necho {answer}\n")
    monkeypatch.setenv("PATH", str(folder))
    # The packages that other tests need may be in the cache that they share.
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return folder


def npm(folder: Path) -> None:
    write_program(folder / "npm", "#!/bin/sh\necho 'npm error no registry here' >&2\nexit 1\n")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (
            ["webgpi", "--browser"],
            ["onnxruntime-web@1.30.0 has no provider 'webgpi'", "did you mean 'webgpu'?"],
        ),
        (["jsep", "--node"], ["onnxruntime-node@1.30.0 has no provider 'jsep'"]),
        (["webgpu", "--node", "--software-gpu"], ["--software-gpu: it is a setting of --browser"]),
        (["webgpu", "--browser", "--plugin", "x"], ["--plugin: there is no such thing with --browser"]),
        (["webgpu", "--browser", "--device", "type=GPU"], ["--device: there is no such thing"]),
        (["webgpu", "--browser"], ["--browser: there is no npm to install its packages with"]),
    ],
)
def test_what_is_wrong_is_said_first(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    messages: list[str],
) -> None:
    assert main(["check", *arguments, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    for message in messages:
        assert message in said
    assert not (tmp_path / "out").exists()


def test_everything_that_is_missing_is_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["check", "webgpu", "--browser", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    for name in ("no program 'node'", "no npm", "no browser; looked for chromium"):
        assert name in said


def test_its_matrix_names_browser_package_and_switches(
    installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    npm(installed)
    out = tmp_path / "out"
    command = ["check", "webgpu", "--browser", "--software-gpu", "--suite", "onnx-simple", "--out", str(out)]
    assert main([*command, "--no-report", "--option", "preferredLayout=NCHW"]) == 3
    assert "no registry here" in capsys.readouterr().out
    [target] = read_matrix(out / "matrix.toml").targets
    assert (target.name, target.provider) == ("browser-webgpu", ("WebGpuExecutionProvider",))
    assert (target.runtime.browser, target.runtime.packages) == ("chromium", (PACKAGES["browser"],))
    assert target.runtime.flags == SOFTWARE_GPU
    assert target.options == {"preferredLayout": "NCHW"}


def test_the_shipped_matrix_has_the_same_switches_and_releases() -> None:
    shipped = tomllib.loads((Path(__file__).parents[2] / "matrices" / "web.toml").read_text("utf-8"))
    runtimes = [target["runtime"] for target in shipped["target"] if "runtime" in target]
    assert {tuple(runtime["flags"]) for runtime in runtimes if len(runtime.get("flags", ())) > 1} == {
        SOFTWARE_GPU
    }
    assert {package for runtime in runtimes for package in runtime["packages"]} == set(PACKAGES.values())


def test_names_of_onnxruntime_are_taken_too(installed: Path, tmp_path: Path) -> None:
    npm(installed)
    out = tmp_path / "out"
    assert main(["check", "CPUExecutionProvider", "--node", "--suite", "onnx-simple", "--out", str(out)]) == 3
    [target] = read_matrix(out / "matrix.toml").targets
    assert (target.name, target.runtime.node) == ("node-cpu", "node")
