"""Where generated text goes wrong, in words: way, position, layer."""

from harness.core.generated import Generated, Generation


def where(generation: Generation | None) -> str:
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


def disagreeing(generation: Generation | None) -> str:
    """Return the first two ways that differ although they must not; else empty. It needs no golden."""
    told = generation.disagreements if generation is not None else ()
    return f"way {told[0]}" if told else ""


def _is_bad(way: Generated) -> bool:
    return way.first_bad is not None or way.cache_from is not None


def _what(way: Generated) -> str:
    if way.first_bad is None:
        return f"{way.first_cache} wrong from position {way.cache_from} on, the logits are right"
    words = f"logits wrong from position {way.first_bad} on"
    if way.cache_from is not None:
        since = "" if way.cache_from == way.first_bad else f" from position {way.cache_from} on"
        words += f", first in {way.first_cache}{since}"
    known = [one for one in way.kl if one is not None]
    return f"{words}; KL {max(known):.2g}" if known else words
