"""The table as a page of the documentation."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.reference_trust.checked import Finding, Trust

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "references.md"

TEXT = Path(__file__).with_suffix(".md").read_text("utf-8")

RIGHT = {"cpu": "CPU EP", "reference": "`onnx.reference`", "neither": "neither", "open": "open"}


def page_of(trust: Trust) -> str:
    """The page."""
    standings = Counter(one.standing for one in trust.operators)
    return TEXT.format(
        onnx=trust.onnx,
        numpy=trust.numpy,
        onnxruntime=trust.onnxruntime,
        agrees=standings["agrees"],
        disagrees=standings["disagrees"],
        raises=standings["raises"],
        unchecked=standings["not checked"],
        specs=trust.specs,
        checks=f"{trust.checks:,}",
        refused=f"{trust.refused:,}",
        wrong=_findings(trust, lambda finding: finding.right != "reference"),
        cpu=_findings(trust, lambda finding: finding.right == "reference"),
        every=_every(trust),
    )


def _findings(trust: Trust, keep: Callable[[Finding], bool]) -> str:
    lines = [
        "| operator | version | where | types | relative difference | checks | right | by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        "| "
        + " | ".join(
            (
                one.name,
                str(one.since),
                _cell(finding.where),
                " ".join(finding.types) or "-",
                _size(finding),
                str(finding.checks),
                RIGHT[finding.right],
                finding.third or "-",
            )
        )
        + " |"
        for one in trust.operators
        for finding in one.findings
        if keep(finding)
    ]
    return "\n".join(lines)


def _size(finding: Finding) -> str:
    return "NaN, shape or type" if finding.by is None else f"{finding.by:.2g}"


def _every(trust: Trust) -> str:
    rows: dict[str, list[str]] = {}
    for one in trust.operators:
        words = {"agrees": f"{one.agreed} agree", "disagrees": "**disagrees**"}.get(
            one.standing, one.standing
        )
        rows.setdefault(one.name, []).append(f"{one.since}: {words}")
    return "\n".join(
        [
            "| operator | versions |",
            "|---|---|",
            *(f"| {name} | {'; '.join(cells)} |" for name, cells in rows.items()),
        ]
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
