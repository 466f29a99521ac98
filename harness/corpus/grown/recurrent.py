"""Productions of recurrent operators."""

from harness.corpus.grown.growth import Growth

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def recurrent(g: Growth) -> None:
    """LSTM, GRU or RNN in each direction, with and without a bias."""
    x = g.pick(lambda one: one.dtype == "float32" and one.rank == 3 and one.size > 0)  # noqa: PLR2004 - sequences
    kind = g.random.choice(list(_GATES))
    direction = g.random.choice(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    width = g.random.randrange(1, 5)
    rows = _GATES[kind] * width
    weights = [g.drawn("float32", (ways, rows, columns), 0.25) for columns in (x.shape[2], width)]
    bias = [g.drawn("float32", (ways, 2 * rows), 0.25)] if g.chance(0.6) else []
    before = g.random.randrange(2) if kind == "GRU" else None
    given = {"hidden_size": width, "direction": direction, "linear_before_reset": before}
    g.ops(2, kind, x, *weights, *bias, most=2, **given)


RECURRENT = (recurrent,)
