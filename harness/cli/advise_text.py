"""What `ep-harness advise` adds for a folder of onnxruntime-genai: speed, shared buffers, and more code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from harness.cli.output import wrapped
from harness.core.errors import one_line
from harness.core.generated import GenerationSpeed
from harness.core.text import visible
from harness.core.ways import WAYS
from harness.corpus.case import load_case
from harness.corpus.decoder import Decoder, decoder_of
from harness.corpus.suites import Suite
from harness.plan.matrix import Matrix
from harness.report.figures import ratio
from harness.studies.advise import Advice, Tried
from harness.studies.ask import Notify
from harness.studies.candidates import GENERATE
from harness.studies.decode_code import decode_code
from harness.studies.genai_code import genai_code
from harness.studies.sharing import SHARED, Sharing, shares_buffer, with_ways

_SHARING = {
    "right": "gives the right results",
    "wrong": "gives WRONG results",
    "declined": "is not possible",
    "unknown": "was not tried",
}


class TextAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the winner besides its place in the ranking.

    Attributes:
        speed: How fast it generates text; None if it was not measured.
        sharing: Whether past and present may share one buffer.
        decode_code: Generates text with the session of onnxruntime.
        genai_code: Makes the model of onnxruntime-genai.
    """

    speed: GenerationSpeed | None
    sharing: Sharing
    decode_code: str
    genai_code: str


def without_sharing(matrix: Matrix) -> Matrix:
    """Return a matrix whose decoders do not share buffers: that is asked about the winner only.

    A configuration that is wrong with a shared buffer may be right without.
    """
    wanted = [way for way in matrix.scenarios.generate.ways if way != SHARED]
    return with_ways(matrix, wanted or [way for way in WAYS if way != SHARED])


def text_advice(
    found: Advice, winner: Tried, suite: Suite, matrix: Matrix, folder: Path, notify: Notify
) -> TextAdvice:
    """Return what is to be known about the winner; ``notify`` receives messages.

    Raises:
        ModelError: The model has been changed meanwhile.
    """
    (model,) = suite.models()
    target = found.targets[winner.candidate.target]
    if found.stopped_by == "interrupt":
        sharing = Sharing(state="unknown", reason="interrupted")
    else:
        notify("trying       the winner with past and present in one buffer")
        sharing = shares_buffer(suite, matrix, target, winner.candidate, notify)
    case = load_case(suite, model, matrix.models.dimensions)
    decoder = decoder_of(case)
    cell = winner.candidate.cell(suite.name, model, GENERATE)
    generation = winner.record.generation
    return TextAdvice(
        speed=generation.speed if generation else None,
        sharing=sharing,
        decode_code=decode_code(case, decoder) if isinstance(decoder, Decoder) else "",
        genai_code=genai_code(target, cell, folder.absolute(), shares=sharing.state == "right"),
    )


def text_lines(text: TextAdvice) -> Iterator[str]:
    """Yield the speed of the winner, and what is known about a shared buffer."""
    if text.speed is not None:
        yield from wrapped(f"speed: {'; '.join(_speed(text.speed))}")
    reason = f": {one_line(visible(text.sharing.reason), 300)}" if text.sharing.reason else ""
    yield from wrapped(f"one buffer for past and present {_SHARING[text.sharing.state]}{reason}")


def as_plain(text: TextAdvice) -> dict[str, Any]:
    """Return the advice for ``--json``."""
    return {
        "speed": text.speed,
        "sharing": text.sharing,
        "decode_code": text.decode_code,
        "genai_code": text.genai_code,
    }


def _speed(speed: GenerationSpeed) -> Iterator[str]:
    for length, ms in sorted(speed.first_token_ms.items())[-1:]:
        yield f"first token {ms:.4g} ms after a prompt of {length:,}"
    for rows, rate in sorted(speed.tokens_per_s.items()):
        yield f"{ratio(rate)} tokens/s" + (f" with a batch of {rows:,}" if rows > 1 else "")
    if speed.cache_mib is not None:
        yield f"cache {speed.cache_mib:.4g} MiB"
