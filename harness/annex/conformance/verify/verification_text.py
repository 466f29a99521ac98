"""A verification as lines for a terminal, as Markdown for a pull request, and as JSON."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from harness.annex.conformance.verify.finding import FINDING_KINDS
from harness.annex.conformance.verify.verification import Verification
from harness.core.text.visible_text import visible

MOST_SHOWN = 50

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~&@:./$-])")
"""Characters that begin markup, a mention or a link in GitHub's Markdown."""

UNPROVED = (
    "Verification shows that a submission agrees with itself, its profile and its signature. "
    "It cannot show that the named library computed the answers."
)


def submission_lines(one: Verification) -> Iterator[str]:
    """Yield the lines of one submission."""
    level = f", {one.result.level}" if one.result is not None else ""
    yield f"{one.name}: {one.outcome}{level}" + (f", signed by {one.signer}" if one.signer else "")
    for each in one.findings[:MOST_SHOWN]:
        yield f"  {each.weight}  {each.name}  {each.where}: {each.what}"
    if len(one.findings) > MOST_SHOWN:
        yield f"  and {len(one.findings) - MOST_SHOWN} more"


def markdown_of(done: Sequence[Verification]) -> str:
    """Return a comment for a pull request; nothing in a submission is interpreted as markup."""
    lines = []
    for one in done:
        level = f", {one.result.level}" if one.result is not None else ""
        lines.append(f"### {_inert(one.name)}: {one.outcome}{level}\n")
        if one.statement is not None:
            product = one.statement.product
            words = (product.vendor, product.name, product.version, one.statement.profile.label)
            lines.append(
                f"{', '.join(_inert(word) for word in words)}; signer: {_inert(one.signer) or 'none'}\n"
            )
        if one.findings:
            lines += ["| finding | means | where | found |", "|---|---|---|---|"]
            lines += [
                f"| {each.name} ({each.weight}) | {FINDING_KINDS[each.name].meaning} | {_inert(each.where)} "
                f"| {_inert(each.what)} |"
                for each in one.findings[:MOST_SHOWN]
            ]
            if len(one.findings) > MOST_SHOWN:
                lines.append(f"\nand {len(one.findings) - MOST_SHOWN} more")
            lines.append("")
    return "\n".join([*lines, UNPROVED, ""])


def json_of(done: Sequence[Verification]) -> list[dict[str, Any]]:
    """Return plain objects, one for each submission."""
    return [
        {
            "submission": one.name,
            "outcome": one.outcome,
            "level": None if one.result is None else str(one.result.level),
            "signer": one.signer,
            "findings": [{"weight": str(each.weight), **msgspec.to_builtins(each)} for each in one.findings],
        }
        for one in done
    ]


def _inert(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", " ".join(visible(text).split()))
