"""Contrast of the report's colours."""

import re

import pytest

from harness.data_files import data_root
from harness.report.words.tone import TONES

SCHEMES = ("light", "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_reach_wcag_aa_on_their_grounds(scheme: str) -> None:
    colours = _palette(scheme)
    pairs = [(f"{name}-text", f"{name}-ground") for name in TONES if name != "missing"]
    pairs += [("good-text", "good-ground"), ("bad-text", "bad-ground"), ("missing-text", "ground")]
    # The hatching of excluded squares is drawn in the colour of skipped ones.
    pairs += [("excluded-text", "skipped"), ("failed-text", "raised")]
    pairs += [(text, ground) for text in ("text", "quiet", "link") for ground in ("ground", "raised")]
    pairs += [("text", "good-ground"), ("text", "bad-ground")]
    # Summaries of details are written in the tone's text colour on the page's ground.
    pairs += [(f"{name}-text", ground) for name in TONES for ground in ("ground", "raised")]
    pairs += [("text", f"heat-{level}") for level in range(5)] + [("text", "untested-ground")]
    low = {pair: round(_contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


def _palette(scheme: str) -> dict[str, str]:
    css = (data_root() / "report_templates" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[SCHEMES.index(scheme)]))


def _contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
