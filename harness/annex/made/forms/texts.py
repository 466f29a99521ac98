"""Operators on strings."""

from typing import Any

import numpy as np

from harness.annex.made.forms.setting import Form, Operand, Setting, broadcast
from harness.core.values.value import STRING

_PLAIN = ("", "a", "B", "abc", "Abc", "x y", "1.5", "a,b", "  b ", "0", "The", "the end", "a,,b,")
"""Texts in ASCII: only these have upper and lower case in every locale."""

_PATTERNS = ("a.*", "[a-z]+", "[A-Z][a-z]*", "", ".*", r"\d+(\.\d+)?", "(a|b),?.*", "x y", r"\s*b\s*")


def _words(setting: Setting, shape: tuple[int, ...], *, fixed: bool = False) -> Operand:
    found = np.array(_PLAIN, object)[setting.draw.whole(shape, 0, len(_PLAIN) - 1)]
    return Operand(array=np.asarray(found, object).reshape(shape), dtype=STRING, fixed=fixed)


def joined(setting: Setting) -> Form:
    """Return a form of StringConcat, whose operands broadcast."""
    shape = setting.shape(0, 4)
    inputs = (setting.drawn(STRING, shape), setting.drawn(STRING, broadcast(setting, shape)))
    return Form(inputs=inputs if setting.draw.chance(50) else inputs[::-1], aliases=True)


def split(setting: Setting) -> Form:
    """Return a form of StringSplit: at whitespace or a delimiter, a limited number of times."""
    attributes: dict[str, Any] = setting.maybe(60, {"delimiter": setting.draw.pick((",", " ", "", ",,"))})
    attributes |= setting.maybe(40, {"maxsplit": setting.draw.between(1, 3)})
    return Form(inputs=(_words(setting, setting.shape(1, 3)),), attributes=attributes, outputs=2)


def matched(setting: Setting) -> Form:
    """Return a form of RegexFullMatch."""
    data = _words(setting, setting.shape(1, 3))
    return Form(inputs=(data,), attributes={"pattern": setting.draw.pick(_PATTERNS)})


def normalized(setting: Setting) -> Form:
    """Return a form of StringNormalizer in the locale that every system has."""
    draw = setting.draw
    shape = (setting.size(9),) if draw.chance(60) else (1, setting.size(9))
    attributes: dict[str, Any] = {"locale": "C", "case_change_action": draw.pick(("NONE", "LOWER", "UPPER"))}
    attributes |= setting.maybe(60, {"is_case_sensitive": draw.below(2)})
    attributes |= setting.maybe(60, {"stopwords": draw.some(("a", "the", "abc", "0", "B"), 2)})
    return Form(inputs=(_words(setting, shape, fixed=True),), attributes=attributes)


def n_grams(setting: Setting) -> Form:
    """Return a form of TfIdfVectorizer with words of one and pairs of two, of numbers or strings."""
    draw = setting.draw
    count = draw.between(2, 5)
    singles, pairs = draw.some(range(6), count), [draw.below(6) for _ in range(2 * draw.between(1, 3))]
    # Each pair once: a repeated one would have two places.
    pairs = [one for pair in dict.fromkeys(zip(pairs[::2], pairs[1::2], strict=True)) for one in pair]
    places = draw.order(count + len(pairs) // 2)
    longest = draw.between(1, 2)
    attributes: dict[str, Any] = {
        "mode": draw.pick(("TF", "IDF", "TFIDF")),
        "min_gram_length": 1,
        "max_gram_length": longest,
        "max_skip_count": draw.below(3) if longest > 1 else 0,
        "ngram_counts": [0, count],
        "ngram_indexes": places,
        "weights": [(1 + draw.below(8)) / 4 for _ in places],
    }
    shape = (draw.between(2, 9),) if draw.chance(60) else (draw.between(1, 3), draw.between(2, 9))
    numbers = draw.whole(shape, 0, 5)
    if setting.dtype(0) != STRING:
        attributes["pool_int64s"] = [*singles, *pairs]
        return Form(inputs=(setting.given(0, numbers),), attributes=attributes)
    words = np.array(_PLAIN[1:7], object)
    attributes["pool_strings"] = [words[at] for at in (*singles, *pairs)]
    return Form(inputs=(Operand(array=words[numbers], dtype=STRING),), attributes=attributes)
