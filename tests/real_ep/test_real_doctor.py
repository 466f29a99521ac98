"""Doctor on the four real providers, as it is called: without a matrix, without a variable set."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.corpus.caches.cache import ENVIRONMENT
from harness.plan.matrix import read_matrix

pytestmark = pytest.mark.real_ep

REAL = [
    "CPUExecutionProvider",
    "OpenVINOExecutionProvider",
    "QNNExecutionProvider",
    "WebGpuExecutionProvider",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, with_suites: Callable[[Path], Path]) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("real-doctor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT, str(with_suites(folder / "cache")))
        # Drivers of display servers look there; a runner may have none.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


@pytest.fixture
def rows(home: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    kept = home / "rows.json"
    if not kept.is_file():
        assert main(["doctor", "--json"]) == 0
        kept.write_text(capsys.readouterr().out, encoding="utf-8")
    return {row["provider"]: row for row in json.loads(kept.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("provider", REAL)
def test_what_computes_here_is_usable(
    rows: dict[str, dict[str, Any]], provider: str, require: Callable[[str, str], None]
) -> None:
    row = rows[provider]
    require(provider, "" if row["state"] == "usable" else f"{row['cause']}: {row['reason']}")
    assert row["nodes"] > 0
    assert row["cause"] == ""
    assert row["devices"][0]["device"]["type"]
    assert row["versions"]["onnxruntime"]
    assert (row["plugin"] is None) is (provider == "CPUExecutionProvider")
    assert bool(row["versions"].get("plugin")) is (row["plugin"] is not None)


def test_there_are_at_least_21(rows: dict[str, dict[str, Any]]) -> None:
    assert len(rows) >= 21
    for row in rows.values():
        assert row["state"] in {"usable", "unavailable"}
        assert bool(row["cause"]) is (row["state"] == "unavailable")
        assert row["advice"] or row["nodes"]


def test_init_makes_a_matrix_of_them(home: Path, rows: dict[str, dict[str, Any]]) -> None:
    matrix_file = home / "init" / "m.toml"  # beside no models, which it would plan instead
    matrix_file.parent.mkdir()
    assert main(["init", "--out", str(matrix_file)]) == 0
    matrix = read_matrix(matrix_file)
    computing = {name for name, row in rows.items() if row["nodes"]}
    assert {target.provider[0] for target in matrix.targets} == computing
    assert main(["run", str(matrix_file), "--out", str(home / "run"), "--model", "test_relu"]) == 0
