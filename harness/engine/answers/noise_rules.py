"""The rounding noise of a model, in the form in which results are compared with it."""

import msgspec

from harness.core.noise.noise import NoiseRule
from harness.core.noise.spread import Spread
from harness.engine.answers.compare_sets import by_name
from harness.engine.answers.evidence import Evidence


def noises(evidence: Evidence) -> NoiseRule | None:
    """Return the noise of a model, with what else may explain an error; None if its noise is unknown."""
    wider = tuple(
        noise_rule(spread, delivers=one.delivers, document=one.document)
        for one, spread in evidence.wider.items()
        if isinstance(spread, Spread)
    )
    if not isinstance(evidence.noise, Spread):
        return None
    return msgspec.structs.replace(noise_rule(evidence.noise), wider=wider)


def noise_rule(spread: Spread, *, delivers: str = "", document: str = "") -> NoiseRule:
    """Return one noise; ``delivers`` and ``document`` are those of ``NoiseRule``."""
    return NoiseRule(
        precision=spread.precision,
        spreads=by_name(spread.outputs),
        moved=by_name(spread.moved),
        lost=by_name(spread.lost),
        delivers=delivers,
        document=document,
    )
