"""Valid data made invalid: trees of plain values in which something small is another thing."""

import copy
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import strategies as st

Path = tuple[str | int, ...]
Choose = Callable[[Sequence[Any]], Any]


def _nested(levels: int) -> Any:
    tree: Any = 1
    for _ in range(levels):
        tree = {"sequence": [tree]}
    return tree


def _keys_nested(levels: int) -> Any:
    tree: Any = 1
    for _ in range(levels):
        tree = {"keys": tree, "values": 1}
    return tree


ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3, 7, 255, 1 << 31, 1 << 53, 1 << 62, 1 << 63, 1 << 70, -(1 << 63) - 1),
    *(0.5, -0.0, 1e15, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
    *("", "x", "y", "0", "\0", "\u202e\x1b[31m", "x" * 70_000, "float32", "bfloat16", "string", "int4", "ok"),
    *("error", "run", "create", "float8e8m0", "complex64", "nan", "1e999", "../../etc/passwd", "out-1"),
    *(b"", b"\0", b"\0" * 8, b"\xff" * 16),
    *([], {}, [[]], [None], [0], ["y"], ["y", "y"], [1, 2, 3], [-1], [1 << 70], [0] * 33, [1] * 65, [0, 3]),
    *({"dtype": "float32"}, {"sequence": 3}, {"file": "out-1"}, {"": {}}, {"x": 1 << 70}, {"status": "ok"}),
    *(_nested(40), _keys_nested(300)),
)
"""What stands in the place of something else."""


def mutated(valid: Any, most: int = 3) -> "st.SearchStrategy[Any]":
    """Variants of a tree of dicts, lists and leaves: some of its parts replaced, left out, doubled or added.

    Args:
        valid: It; stays as it is.
        most: Changes at most.
    """
    from hypothesis import strategies as st  # takes half a second, and benchmarks need only what is below

    @st.composite
    def drawn(draw: Callable[..., Any]) -> Any:
        changes = draw(st.integers(0, most))
        return changed(valid, changes, lambda options: draw(st.sampled_from(options)))

    return drawn()


def changed(valid: Any, changes: int, choose: Choose) -> Any:
    """Return a variant with so many changes; ``choose`` takes one of several things."""
    tree = [copy.deepcopy(valid)]  # so that the tree itself can be replaced
    for _ in range(changes):
        _change(choose, tree, choose(list(_paths(tree[0], (0,)))))
    return tree[0]


def _change(choose: Choose, tree: list[Any], path: Path) -> None:
    holder: Any = functools.reduce(lambda inner, key: inner[key], path[:-1], tree)  # type: ignore[index]
    key: Any = path[-1]
    old = holder[key]
    kinds = ["replace"] * 4 + ["leave out", "double"] + ["add"] * isinstance(old, dict | list)
    match choose(kinds):
        case "replace":
            holder[key] = copy.deepcopy(choose(ODD))
        case "leave out" if len(path) > 1:
            del holder[key]
        case "double" if isinstance(holder, list) and len(path) > 1:
            holder.insert(key, copy.deepcopy(old))
        case "double":
            holder[key] = [old, copy.deepcopy(old)]
        case "add" if isinstance(old, dict):
            old[choose(("x", "y", "", "schema", "0", "sequence", "data"))] = copy.deepcopy(choose(ODD))
        case "add":
            old.append(copy.deepcopy(choose(ODD)))


def _paths(tree: Any, here: Path) -> Iterator[Path]:
    yield here
    if len(here) > 12:
        return
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in inner:
        yield from _paths(part, (*here, key))


def each_replaced(valid: Any, step: int = 1) -> Iterator[Any]:
    """Every variant in which one part is another thing, and every one in which one part is missing.

    All of them were tried when the border was drawn. With a ``step`` of 29, parts and things are different,
    and it takes a second.
    """
    yield from itertools.islice(_each_replaced(valid), 0, None, step)


def _each_replaced(valid: Any) -> Iterator[Any]:
    for path in _paths(valid, (0,)):
        for odd in (*ODD, _MISSING):
            tree = [copy.deepcopy(valid)]
            holder: Any = functools.reduce(lambda inner, key: inner[key], path[:-1], tree)  # type: ignore[index]
            if odd is not _MISSING:
                holder[path[-1]] = copy.deepcopy(odd)
            elif len(path) > 1:
                del holder[path[-1]]
            yield tree[0]


_MISSING = object()
