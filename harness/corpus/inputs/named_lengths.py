"""Inputs that count the rows of another input, by their names: ``waveforms_lens``, ``input_length``.

The graph shows this only where it compares them with positions of that input (``axis_counts``), and many
graphs divide by the step of a spectrum before.
"""

from collections.abc import Iterator, Mapping, Sequence

from harness.corpus.model.port import Port, name_words
from harness.corpus.model.symbols import axis_name
from harness.operators.value_domains import Domain, Extent

_LENGTHS = frozenset({"len", "lens", "length", "lengths"})
_OTHER_LENGTHS = frozenset({"cache", "kv", "max", "min", "past", "total"})
"""Lengths of a cache, of what is generated, or of all together, which may be longer than any input."""


def with_named_lengths(domains: Mapping[str, Domain], ports: Sequence[Port]) -> dict[str, Domain]:
    """Return the values that inputs may hold, those of lengths by their names included."""
    found = dict(domains)
    for port in ports:
        words = name_words(port.name)
        if not words or words[-1] not in _LENGTHS or not _OTHER_LENGTHS.isdisjoint(words):
            continue
        if port.type.dtype not in {"int32", "int64"} or not _is_one_for_each_row(port):
            continue
        known = found.get(port.name, Domain())
        lengths = () if known.extents or known.lengths or known.pattern else tuple(_extents(port, ports))
        if lengths:
            found[port.name] = known.within(Domain(lengths=lengths))
    return found


def _is_one_for_each_row(port: Port) -> bool:
    shape = port.type.shape
    return shape is not None and all(size == 1 for size in shape[1:])


def _extents(port: Port, ports: Sequence[Port]) -> Iterator[Extent]:
    """Yield the length of a row of each input that is meant: of those with a word of it, or else of all."""
    rows = [(one, length) for one in ports if one.name != port.name and (length := _row_length(one))]
    named = [
        length for one, length in rows if not set(name_words(one.name)).isdisjoint(name_words(port.name)[:-1])
    ]
    yield from named or (length for _, length in rows)


def _row_length(port: Port) -> Extent | None:
    """Return the length of a row: of the last open axis behind the first, or else of the longest one."""
    shape, names = port.type.shape or (), port.type.axes
    if len(shape) == 1 and port.type.dtype.startswith("float"):
        return shape[0] or names[0] or axis_name(0)
    opened = [axis for axis in range(1, len(shape)) if shape[axis] is None]
    if opened:
        return names[opened[-1]] or axis_name(opened[-1])
    longest = max((size or 0 for size in shape[1:]), default=0)
    return longest if longest > 1 else None
