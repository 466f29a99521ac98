"""What a record says about generated text: how far each position is from the golden, and from where on.

A *way* is one use of a decoder with its cache, such as a prefill at once and then single tokens. All ways of
one text have the same right answer: the CPU EP's logits for the whole text at once.
"""

from typing import Annotated

import msgspec

PositionShare = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Generated(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The logits and the cache of one way.

    Attributes:
        way: Name of the way.
        positions: Positions that were compared.
        kl: Kullback-Leibler divergence of the distribution from the golden's, in nats, by position; the
            largest of the batch; null where it is not finite.
        top1: Share of positions with the same first token, among those where the golden's margin exceeds the
            noise; null if there is no such position.
        top5: The same for the set of the first five tokens.
        top10: The same for the set of the first ten tokens.
        noise: Largest error of a logit as a multiple of the model's rounding noise; null if that is not
            known.
        first_bad: The first position whose logits fail; null if none does.
        first_cache: The first cache output, in the order of the layers, that fails at the first position
            where any fails; empty if none does.
        cache_from: The position from which on it fails; null if no cache fails.
        first_stage: For a folder of several sessions, the first one that gives a wrong value; empty if none
            does.
        first_value: That value.
        perplexity: Of the text under the EP's logits; null where it is not finite.
        golden_perplexity: Of the text under the golden's.
    """

    way: str
    positions: int
    kl: tuple[float | None, ...] = ()
    top1: PositionShare | None = None
    top5: PositionShare | None = None
    top10: PositionShare | None = None
    noise: float | None = None
    first_bad: int | None = None
    first_cache: str = ""
    cache_from: int | None = None
    first_stage: str = ""
    first_value: str = ""
    perplexity: float | None = None
    golden_perplexity: float | None = None


class GenerationSpeed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How fast a session generates text.

    Attributes:
        first_token_ms: Length of the prompt -> milliseconds until its logits are there.
        tokens_per_s: Size of the batch -> tokens each second in decode, all rows of the batch counted.
        tokens_per_s_at: Length of the context -> tokens each second after it, with a batch of 1; empty
            without a cache.
        cache_mib: Size of the cache at the last position, in MiB.
    """

    first_token_ms: dict[int, float] = {}
    tokens_per_s: dict[int, float] = {}
    tokens_per_s_at: dict[int, float] = {}
    cache_mib: float | None = None


class StagePlace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where one session of a folder ran.

    Attributes:
        name: The session's key in ``genai_config.json``.
        asked: Whether it is the EP's; else the folder wants the CPU EP for it, and its nodes are not counted.
        ep_nodes: Nodes on the EP.
        cpu_nodes: Nodes on the CPU EP.
        cpu_ops: Operators on the CPU EP, and their numbers.
    """

    name: str
    asked: bool = True
    ep_nodes: int = 0
    cpu_nodes: int = 0
    cpu_ops: dict[str, int] = {}


class GenerationFigures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The scenario ``generate`` of one cell.

    Attributes:
        ways: Each way that was played.
        declined: Way -> why the model or the EP cannot play it.
        disagreements: Ways of this EP that differ beyond noise from its first way; this check needs no
            golden.
        text: Tokens that the EP chooses by itself after the prompt, for people; never judged.
        golden_text: The same of the CPU EP; empty if it was not asked.
        speed: How fast it is; null if it was not measured.
        stages: The sessions of a folder that has several.
    """

    ways: tuple[Generated, ...] = ()
    declined: dict[str, str] = {}
    disagreements: tuple[str, ...] = ()
    text: tuple[int, ...] = ()
    golden_text: tuple[int, ...] = ()
    speed: GenerationSpeed | None = None
    stages: tuple[StagePlace, ...] = ()


def without_speed(generation: GenerationFigures | None) -> GenerationFigures | None:
    """Return what is known of generated text but its speed."""
    if generation is None or generation.speed is None:
        return generation
    return msgspec.structs.replace(generation, speed=None)


def where(generation: GenerationFigures | None) -> str:
    """Return the first way that fails, its first bad position and the cache that fails first; else empty.

    ``way step: logits wrong from position 6 on, first in present.1.value; KL 0.83; so are 3 other ways``
    """
    bad = [way for way in generation.ways if _is_bad(way)] if generation is not None else []
    if not bad:
        return ""
    others = len(bad) - 1
    words = f"way {bad[0].way}: {_what(bad[0])}"
    if others:
        words += f"; {others} other {'ways are' if others > 1 else 'way is'} wrong, too"
    return words


def stages_on_cpu(generation: GenerationFigures | None) -> str:
    """Return which of the EP's sessions of a folder the CPU EP ran, in words; empty if none."""
    stages = generation.stages if generation is not None else ()
    asked = [one for one in stages if one.asked]
    missed = [one.name for one in asked if not one.ep_nodes and one.cpu_nodes]
    if not missed or len(missed) == len(asked):
        return ""
    return f"stage{'s' if len(missed) > 1 else ''} {', '.join(missed)} ran on the CPU EP"


def disagreeing(generation: GenerationFigures | None) -> str:
    """Return the first two ways that differ although they must agree.

    Else empty. This check needs no golden.
    """
    told = generation.disagreements if generation is not None else ()
    return f"way {told[0]}" if told else ""


def _is_bad(way: Generated) -> bool:
    return way.first_bad is not None or way.cache_from is not None or bool(way.first_stage)


def _what(way: Generated) -> str:
    first = f"first in stage {way.first_stage}: {way.first_value}" if way.first_stage else ""
    if way.first_bad is None and way.cache_from is None:
        return f"{way.first_value} of stage {way.first_stage} wrong, the logits are right"
    if way.first_bad is None:
        words = f"{way.first_cache} wrong from position {way.cache_from} on, the logits are right"
        return f"{words}, {first}" if first else words
    words = f"logits wrong from position {way.first_bad} on"
    if first:
        words += f", {first}"
    elif way.cache_from is not None:
        since = "" if way.cache_from == way.first_bad else f" from position {way.cache_from} on"
        words += f", first in {way.first_cache}{since}"
    known = [one for one in way.kl if one is not None]
    return f"{words}; KL {max(known):.2g}" if known else words
