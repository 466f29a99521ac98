"""Recurrent layers, attention and position embeddings."""

from typing import Any

from harness.annex.made.forms.input_values import SMALL, UNIT
from harness.annex.made.forms.setting import Form, Operand, Setting

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def recurrent(setting: Setting) -> Form:
    """Return a form of RNN, GRU or LSTM, in each direction, with inputs left out."""
    draw = setting.draw
    gates = _GATES[setting.name]
    direction = draw.pick(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    steps, batch, size, hidden = (draw.between(1, most) for most in (6, 3, 6, 7))
    attributes: dict[str, Any] = {"hidden_size": hidden}
    if ways == 2 or draw.chance(60):  # noqa: PLR2004
        attributes["direction"] = direction
    else:
        direction = "forward"
    if setting.has("linear_before_reset"):
        attributes |= setting.maybe(50, {"linear_before_reset": draw.below(2)})
    inputs: list[Operand | None] = [
        setting.operand(0, (steps, batch, size), UNIT),
        setting.operand(1, (ways, gates * hidden, size), SMALL, constant=True),
        setting.operand(2, (ways, gates * hidden, hidden), SMALL, constant=True),
        setting.operand(3, (ways, 2 * gates * hidden), SMALL, constant=True) if draw.chance(60) else None,
        setting.given(4, draw.whole((batch,), 1, steps)) if draw.chance(30) else None,
        setting.operand(5, (ways, batch, hidden), SMALL) if draw.chance(40) else None,
    ]
    if setting.name == "LSTM":
        inputs.append(setting.operand(6, (ways, batch, hidden), SMALL) if draw.chance(40) else None)
        peepholes = (ways, 3 * hidden)
        inputs.append(setting.operand(7, peepholes, SMALL, constant=True) if draw.chance(20) else None)
    while inputs[-1] is None:
        inputs.pop()
    outputs = draw.between(1, len(setting.operator.outputs))
    return Form(inputs=tuple(inputs), attributes=attributes, outputs=outputs)


def attention(setting: Setting) -> Form:
    """Return a form of ONNX's Attention in four dimensions: grouped heads, masks, causality, a scale."""
    draw = setting.draw
    batch, kv_heads, group = draw.pick((1, 2)), draw.pick((1, 2, 3)), draw.pick((1, 1, 2))
    queries, keys = draw.between(1, 7), draw.between(1, 9)
    size, value_size = draw.pick((4, 8, 16)), draw.pick((4, 8, 16))
    heads = kv_heads * group
    inputs: list[Operand | None] = [
        setting.operand(0, (batch, heads, queries, size), UNIT),
        setting.operand(1, (batch, kv_heads, keys, size), UNIT),
        setting.operand(2, (batch, kv_heads, keys, value_size), UNIT),
    ]
    attributes: dict[str, Any] = setting.maybe(40, {"scale": 0.25}) | setting.maybe(20, {"softcap": 2.0})
    if draw.chance(40):
        shape = draw.pick(((queries, keys), (1, 1, queries, keys), (batch, heads, queries, keys)))
        mask = setting.operand(3, shape)
        if mask.dtype == "bool":
            # A row that masks everything has no softmax.
            array = mask.array.copy()
            array[..., 0] = True
            mask = Operand(array=array, dtype="bool")
        inputs.append(mask)
    elif draw.chance(40):
        attributes["is_causal"] = 1
    return Form(inputs=tuple(inputs), attributes=attributes)


def rotary(setting: Setting) -> Form:
    """Return a form of ONNX's RotaryEmbedding, with positions."""
    draw = setting.draw
    batch, heads = draw.pick((1, 2)), draw.pick((1, 2, 3))
    steps, size = draw.between(1, 6), draw.pick((4, 8, 16))
    longest = steps + draw.below(4)
    caches = [setting.operand(at, (longest, size // 2), UNIT) for at in (1, 2)]
    positions = setting.given(3, draw.whole((batch, steps), 0, longest - 1))
    attributes = setting.maybe(50, {"interleaved": draw.below(2)})
    inputs = (setting.operand(0, (batch, heads, steps, size), UNIT), *caches, positions)
    return Form(inputs=inputs, attributes=attributes)


def heads(setting: Setting) -> Form:
    """Return a form of onnxruntime's MultiHeadAttention without masks."""
    draw = setting.draw
    batch, count, size = draw.pick((1, 2)), draw.pick((1, 2, 4)), draw.pick((4, 8))
    queries, keys = draw.between(1, 6), draw.between(1, 8)
    width = count * size
    inputs: list[Operand | None] = [
        setting.operand(0, (batch, queries, width), UNIT),
        setting.operand(1, (batch, keys, width), UNIT),
        setting.operand(2, (batch, keys, width), UNIT),
    ]
    if draw.chance(40):
        inputs.append(setting.operand(3, (3 * width,), UNIT))
    return Form(inputs=tuple(inputs), attributes={"num_heads": count} | setting.maybe(30, {"scale": 0.25}))


def loss(setting: Setting) -> Form:
    """Return a form of a loss over classes."""
    draw = setting.draw
    batch, classes = draw.between(1, 5), draw.between(2, 9)
    rest = [draw.between(1, 4) for _ in range(draw.below(3))]
    inputs: list[Operand | None] = [
        setting.operand(0, (batch, classes, *rest)),
        setting.given(1, draw.whole((batch, *rest), 0, classes - 1)),
    ]
    if draw.chance(40):
        inputs.append(setting.given(2, draw.whole((classes,), 1, 8) / 4))
    attributes = setting.maybe(70, {"reduction": draw.pick(("none", "sum", "mean"))})
    return Form(inputs=tuple(inputs), attributes=attributes)
