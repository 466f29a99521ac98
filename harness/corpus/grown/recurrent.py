"""Productions of recurrent operators."""

from typing import Any

from harness.corpus.grown.growth import Growth

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(g: Growth) -> None:
    """Add LSTM, GRU or RNN in each direction, with and without a bias."""
    x = g.pick(lambda one: one.dtype == "float32" and one.rank == 3 and one.size > 0)  # noqa: PLR2004 - sequences
    kind = g.random.pick(list(_GATES))
    direction = g.random.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    width = g.random.between(1, 4)
    rows = _GATES[kind] * width
    weights = [g.drawn("float32", (ways, rows, columns), 0.25) for columns in (x.shape[2], width)]
    bias = [g.drawn("float32", (ways, 2 * rows), 0.25)] if g.chance(0.6) else []
    before = g.random.below(2) if kind == "GRU" else None
    given: dict[str, Any] = {"hidden_size": width, "direction": direction, "linear_before_reset": before}
    g.ops(2, kind, x, *weights, *bias, most=2, **given)


RECURRENT = (recurrent,)
