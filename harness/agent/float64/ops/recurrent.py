"""RNN, GRU and LSTM, with everything in their texts: lengths, clips, activations, peepholes, directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_Cell = Callable[[AnyArray, "tuple[AnyArray, ...]"], "tuple[AnyArray, ...]"]
"""The input of a step ``(B, gates * hidden)`` and states -> the next states; the first one is the output."""


def _functions(node: VersionedNode, defaults: list[str], direction: int) -> list[Any]:
    """Return the activations of one direction."""
    names = node.get("activations")
    texts = [one.decode() if isinstance(one, bytes) else one for one in names] if names else None
    count = len(defaults)
    chosen = texts[direction * count : (direction + 1) * count] if texts else defaults
    alphas, betas = list(node.get("activation_alpha") or []), list(node.get("activation_beta") or [])
    if (alphas or betas) and len(set(texts or [])) > 1:
        raise UnsupportedError(
            "nothing computes parameters of several activations of %s in float64" % node.name
        )
    at = direction * count
    return [_function(name, alphas[at : at + 1], betas[at : at + 1]) for name in chosen]


def _function(name: str, alpha: list[float], beta: list[float]) -> Any:
    a, b = next(iter(alpha), None), next(iter(beta), None)
    third = float(np.float32(0.01))
    table = {
        "Sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "Tanh": np.tanh,
        "Relu": lambda x: np.maximum(x, 0.0),
        "Affine": lambda x: (1.0 if a is None else a) * x + (0.0 if b is None else b),
        "LeakyRelu": lambda x: np.where(x < 0, (third if a is None else a) * x, x),
        "ThresholdedRelu": lambda x: np.where(x > (1.0 if a is None else a), x, 0.0),
        "HardSigmoid": lambda x: np.clip(
            (float(np.float32(0.2)) if a is None else a) * x + (0.5 if b is None else b), 0.0, 1.0
        ),
        "Elu": lambda x: np.where(x < 0, (1.0 if a is None else a) * np.expm1(x), x),
        "Softsign": lambda x: x / (1.0 + np.abs(x)),
        "Softplus": lambda x: np.logaddexp(x, 0.0),
    }
    if name not in table:
        raise UnsupportedError("nothing computes the activation %s in float64" % name)
    return table[name]


def _clip(node: VersionedNode, x: AnyArray) -> AnyArray:
    limit = node.get("clip")
    return x if limit is None else np.clip(x, -limit, limit)


def _run(
    node: VersionedNode,
    x: AnyArray,
    lengths: AnyArray,
    states: list[AnyArray],
    cells: list[tuple[AnyArray, AnyArray, _Cell]],
) -> Any:
    """Run all directions.

    Args:
        node: The node.
        x: ``(T, B, input)``, or with batches first.
        lengths: Steps of each text; None for all.
        states: First states ``(directions, B, hidden)``.
        cells: For each direction its weights of inputs, their bias, and a step.

    Returns:
        Returns all output states ``(T, directions, B, hidden)``, and the last states.
    """
    last = bool(node.get("layout", 0))
    steps = x.swapaxes(0, 1) if last else x
    begin = [one.swapaxes(0, 1) if last else one for one in states]
    count, batch = steps.shape[:2]
    ends = np.full(batch, count) if lengths is None else lengths.astype(np.int64)
    way = node.get("direction", "forward")
    ys = np.zeros((count, len(cells), batch, begin[0].shape[-1]))
    finals: list[list[AnyArray]] = [[] for _ in begin]
    for number, (w, bias, cell) in enumerate(cells):
        backwards = way == "reverse" or number == 1
        inputs = steps @ w.T + bias
        now = tuple(one[number] for one in begin)
        for step in range(count):
            # A text that runs backwards begins at its own end.
            at = np.where(step < ends, ends - 1 - step, step) if backwards else np.full(batch, step)
            new = cell(inputs[at, np.arange(batch)], now)
            goes = (step < ends)[:, None]
            now = tuple(np.where(goes, one, other) for one, other in zip(new, now))
            ys[at, number, np.arange(batch)] = np.where(goes, new[0], 0.0)
        for kept, state in zip(finals, now):
            kept.append(state)
    ends_of = [np.stack(one) for one in finals]
    if last:
        return (ys.transpose(2, 0, 1, 3), *(one.swapaxes(0, 1) for one in ends_of))
    return (ys, *ends_of)


def _states(
    node: VersionedNode, x: AnyArray, directions: int, hidden: int, given: list[AnyArray]
) -> list[AnyArray]:
    last = bool(node.get("layout", 0))
    batch = x.shape[0] if last else x.shape[1]
    shape = (batch, directions, hidden) if last else (directions, batch, hidden)
    return [np.zeros(shape) if one is None else one for one in given]


def rnn(node: VersionedNode, x: AnyArray, w: AnyArray, r: AnyArray, *rest: AnyArray) -> Any:
    """RNN."""
    bias, lengths, first = [*rest, None, None, None][:3]
    hidden = r.shape[-1]

    def cell(number: int) -> tuple[AnyArray, AnyArray, _Cell]:
        (f,) = _functions(node, ["Tanh"], number)
        shift = 0.0 if bias is None else bias[number, :hidden] + bias[number, hidden:]
        return w[number], shift, lambda part, now: (f(_clip(node, part + now[0] @ r[number].T)),)

    cells = [cell(number) for number in range(w.shape[0])]
    return _run(node, x, lengths, _states(node, x, len(cells), hidden, [first]), cells)


def gru(node: VersionedNode, x: AnyArray, w: AnyArray, r: AnyArray, *rest: AnyArray) -> Any:
    """GRU; the gates are z, r, h."""
    bias, lengths, first = [*rest, None, None, None][:3]
    hidden = r.shape[-1]
    late = bool(node.get("linear_before_reset", 0))

    def cell(number: int) -> tuple[AnyArray, AnyArray, _Cell]:
        f, g = _functions(node, ["Sigmoid", "Tanh"], number)
        own = np.zeros(6 * hidden) if bias is None else bias[number]
        of_input, of_state = own[: 3 * hidden], own[3 * hidden :]
        rz, rr, rh = np.split(r[number], 3)
        bz, br, bh = np.split(of_state, 3)

        def step(part: AnyArray, now: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
            (h,) = now
            xz, xr, xh = np.split(part, 3, -1)
            z = f(_clip(node, xz + h @ rz.T + bz))
            reset = f(_clip(node, xr + h @ rr.T + br))
            inner = reset * (h @ rh.T + bh) if late else (reset * h) @ rh.T + bh
            return ((1.0 - z) * g(_clip(node, xh + inner)) + z * h,)

        return w[number], of_input, step

    cells = [cell(number) for number in range(w.shape[0])]
    return _run(node, x, lengths, _states(node, x, len(cells), hidden, [first]), cells)


def lstm(node: VersionedNode, x: AnyArray, w: AnyArray, r: AnyArray, *rest: AnyArray) -> Any:
    """LSTM; the gates are i, o, f, c."""
    bias, lengths, first, first_c, peep = [*rest, *[None] * 5][:5]
    hidden = r.shape[-1]

    def cell(number: int) -> tuple[AnyArray, AnyArray, _Cell]:
        f, g, h = _functions(node, ["Sigmoid", "Tanh", "Tanh"], number)
        shift = 0.0 if bias is None else bias[number, : 4 * hidden] + bias[number, 4 * hidden :]
        pi, po, pf = np.zeros((3, hidden)) if peep is None else np.split(peep[number], 3)

        def step(part: AnyArray, now: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
            state, c = now
            xi, xo, xf, xc = np.split(part + state @ r[number].T, 4, -1)
            i = f(_clip(node, xi + pi * c))
            forget = 1.0 - i if node.get("input_forget", 0) else f(_clip(node, xf + pf * c))
            new = forget * c + i * g(_clip(node, xc))
            o = f(_clip(node, xo + po * new))
            return o * h(new), new

        return w[number], shift, step

    cells = [cell(number) for number in range(w.shape[0])]
    return _run(node, x, lengths, _states(node, x, len(cells), hidden, [first, first_c]), cells)
