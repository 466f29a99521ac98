import contextlib
from pathlib import Path

import pytest

from harness.core.records.verdict import Verdict
from harness.report.runs.read import EDGE_BYTES, captured_output
from tests.kit import record


def test_captured_output_is_cut_to_its_ends(tmp_path: Path) -> None:
    failing = record(verdict=Verdict.CRASH, artifacts="artifacts/1f")
    assert captured_output(tmp_path, failing) == ""
    folder = tmp_path / "artifacts" / "1f"
    folder.mkdir(parents=True)
    (folder / "output.txt").write_bytes(b"short \xff\r\n")
    assert captured_output(tmp_path, failing) == "short \N{REPLACEMENT CHARACTER}"
    (folder / "output.txt").write_bytes(b"A" * EDGE_BYTES + b"-" * 100_000 + b"Z" * EDGE_BYTES)
    excerpt = captured_output(tmp_path, failing)
    assert (
        excerpt
        == "A" * EDGE_BYTES
        + "\n\N{HORIZONTAL ELLIPSIS} 100,000 bytes left out \N{HORIZONTAL ELLIPSIS}\n"
        + "Z" * EDGE_BYTES
    )


@pytest.mark.parametrize("path", ["../secret", "artifacts/../../secret", "artifacts/link", "nul\x00byte"])
def test_captured_output_never_leaves_the_run_folder(tmp_path: Path, path: str) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "output.txt").write_text("secret", encoding="utf-8")
    run = tmp_path / "run"
    (run / "artifacts").mkdir(parents=True)
    # Without the right to make links on this system, the path is just missing.
    with contextlib.suppress(OSError):
        (run / "artifacts" / "link").symlink_to(secret, target_is_directory=True)
    assert captured_output(run, record(verdict=Verdict.CRASH, artifacts=path)) == ""
    assert captured_output(run, record(verdict=Verdict.CRASH, artifacts=str(secret))) == ""
