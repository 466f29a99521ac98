"""The page of `ep-harness levels`."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

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
from harness.report.pages.levels_page import levels_page, write_levels_page

CONV, ADD, FUSED = (
    OperatorType("", "Conv"),
    OperatorType("", "Add"),
    OperatorType("com.microsoft", "FusedConv"),
)
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


class Text(HTMLParser):
    """Collects text outside style and script, and the elements."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside = ""
        self.words: list[str] = []
        self.tags: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        self.inside = tag
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        del tag
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside not in {"style", "script"}:
            self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)


def found(name: str = "toy", *, complete: bool = True) -> Levels:
    return Levels(
        model=name,
        opsets={"ai.onnx": 17},
        nodes=3,
        nested=0,
        onnxruntime="1.31.1",
        steps=(
            LevelStep(
                level="basic",
                form="onnx",
                nodes=2,
                against="model",
                changes=(
                    GraphChange(kind="fused", before=((CONV, 1), (ADD, 1)), after=((FUSED, 1),), times=2),
                ),
            ),
            LevelStep(level="basic", form="ort", problem=f"crash: {name}"),
        ),
        operators=(
            OperatorRow(operator=CONV, in_model=2, counts=(0, None)),
            OperatorRow(operator=ADD, in_model=1, counts=(1, None)),
            OperatorRow(operator=FUSED, in_model=0, counts=(1, None)),
        ),
        targets=(
            TargetShares(
                target=f"npu {name}",
                provider="NpuExecutionProvider",
                onnxruntime="1.24.1",
                shares=(TargetShare(verdict=Verdict.PASS, nodes=2, of=2, partitions=1), None),
            ),
            TargetShares(
                target="gpu",
                provider="GpuExecutionProvider",
                shares=(TargetShare(verdict=Verdict.ERROR, reason=f"said {name}"), None),
            ),
        ),
        complete=complete,
    )


def test_it_tells_counts_changes_and_shares() -> None:
    text = Text(levels_page(found())).text
    for part in (
        "3 nodes; opset ai.onnx 17",
        "onnxruntime's own operators com.microsoft.FusedConv · 1 +1 ",
        "Conv 2 · -2 ",
        "all nodes 3 2 -1 ",
        "basic against the model as it is fused 2 ",
        " Conv + Add → com.microsoft.FusedConv",
        "NpuExecutionProvider, onnxruntime 1.24.1 2 of 2 1 partition ✓ pass",
        "✗ error",
        "gpu at basic : error: said toy",
        "No graph: ORT basic . crash: toy",
        "✓ Complete",
    ):
        assert part in text


def test_an_incomplete_one_says_so() -> None:
    text = Text(levels_page(found(complete=False))).text
    assert "✗ INCOMPLETE" in text
    assert "✓ Complete" not in text


def test_hostile_names_are_inert() -> None:
    html = levels_page(found(HOSTILE))
    assert "<img" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "img" not in Text(html).tags
    assert Text(html).tags.count("script") <= 1


def test_it_refers_to_nothing_outside_itself() -> None:
    html = levels_page(found())
    assert "default-src 'none'" in html
    assert "http://" not in html
    assert "https://" not in html


def test_it_goes_into_a_folder_that_is_made(tmp_path: Path) -> None:
    page = write_levels_page(found(), tmp_path / "a" / "b")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="--out"):
        write_levels_page(found(), tmp_path / "file")
