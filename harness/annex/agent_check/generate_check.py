"""The check of the scenario ``generate``: a decoder of sums, whose logits are known without a runtime."""

import msgspec
import numpy as np

from harness.annex.agent_check.bench import Bench
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.early_ends import FaultError
from harness.annex.agent_check.models import model
from harness.core.records.scenario import GENERATE
from harness.core.records.ways import TextSettings, plays_of
from harness.core.values.value import tensor
from harness.corpus.decoders.decoder import CachePair, Decoder
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.plan.scenarios import Scenarios

_TEXT = TextSettings(ways=("at_once", "step"), length=6, new_tokens=2)
_TOKENS = (2, 0, 1, 1, 2, 0)
_TABLE = np.array([[1, -2], [4, 8], [-16, 32]], np.float32)
"""The embedding of each token; sums of these are exact."""

_SUMS = """(int64[batch, sequence] tokens, float[batch, before, 2] past)
    => (float[batch, sequence, 2] logits, float[batch, after, 2] present)
    <int64[1] axis = {1}, int64[1] two = {2}, int64[1] most = {1073741824},
     float[3, 2] table = {1, -2, 4, 8, -16, 32}> {
    new = Gather(table, tokens)
    present = Concat <axis = 1> (past, new)
    sums = CumSum(present, axis)
    shape = Shape(past)
    start = Slice(shape, axis, two)
    logits = Slice(sums, start, most, axis)
}"""
"""A decoder whose cache holds the embedded tokens, and whose logits are their sums."""

_DECODER = Decoder(
    tokens="tokens",
    logits="logits",
    cache=(CachePair(past="past", present="present", axis=1),),
    vocabulary=len(_TABLE),
)


def plays_text(bench: Bench) -> None:
    """Check that a text played at once and in steps gives the sums of its tokens so far."""
    bench.declines("scenario", f"scenario:{GENERATE}", GENERATE)
    plays = tuple(one for way in _TEXT.ways for one in plays_of(way, _TEXT.length, _TEXT.new_tokens, 1))
    generation = GenerationSupport(
        decoder=_DECODER, plays=plays, declined={}, batch_axes={"tokens": 0, "past": 0}
    )
    text = {
        "tokens": tensor(np.array([_TOKENS], np.int64)),
        "past": tensor(np.zeros((1, 0, 2), np.float32)),
    }
    answer = bench.ask(
        bench.path("sums", model(_SUMS)),
        *[text] * len(plays),
        scenario=GENERATE,
        scenario_settings=Scenarios().settings(GENERATE),
        generate={**msgspec.to_builtins(generation), "new_tokens": _TEXT.new_tokens},
    )
    embedded = _TABLE[list(_TOKENS)][None]
    for index, play in enumerate(plays):
        found = dict(answer.outputs(index))
        if found.keys() != {"logits", "present"}:
            raise FaultError("form", f"way {play.name} has outputs {', '.join(sorted(found))}")
        same(found["logits"], tensor(embedded.cumsum(1)), f"logits of way {play.name}")
        same(found["present"], tensor(embedded), f"cache of way {play.name}")
