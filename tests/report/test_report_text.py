import contextlib
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.report.captured import EDGE_BYTES, captured_output
from harness.report.text import visible

MakeRecord = Callable[..., Record]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä ✓ 模型\n\tindented", "plain ä ✓ 模型\n\tindented"),
        ("\x1b[0;93mwarning\x1b[m", "warning"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x07", "link"),
        ("\x1b(Bcharset", "charset"),
        ("bell\x07 nul\x00 cr\r", "bell\\x07 nul\\x00 cr\\x0d"),
        ("\x1b", "\\x1b"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("pass\u200bword", "pass\\u200bword"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("lone\ud800", "lone\\ud800"),
    ],
)
def test_what_cannot_be_seen_is_dropped_or_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters(), max_size=200))
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)
    hidden = {c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}} - {"\n", "\t"}
    assert not hidden
    assert not {c for c in shown if unicodedata.bidirectional(c) in _BIDI_CONTROLS}
    assert visible(shown) == shown
    shown.encode("utf-8")


_BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def test_captured_output_is_cut_to_its_ends(tmp_path: Path, record: MakeRecord) -> None:
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
def test_captured_output_never_leaves_the_run_folder(tmp_path: Path, record: MakeRecord, path: str) -> None:
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
