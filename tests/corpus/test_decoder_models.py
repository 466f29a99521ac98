"""The decoders on the CPU EP: they run, their cache is one, and every part of them matters."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.annex.made.decoders.form import LAYERS, VOCABULARY, DecoderForm
from harness.annex.made.decoders.roster import DECODERS, LEFT_OUT, add, build, decoder_names
from harness.annex.made.zoo.graph_builder import GraphBuilder

ort: Any = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.real_ep

Array = np.ndarray[Any, Any]
TEXT = 40
"""Positions of the texts: more than any window."""

ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


@functools.cache
def model_of(name: str) -> onnx.ModelProto:
    return build(name).model(name)


def session(model: onnx.ModelProto) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def text(length: int = TEXT) -> Array:
    return np.random.default_rng(7).integers(0, VOCABULARY, (1, length))


def played(made: Any, form: DecoderForm, ids: Array, steps: tuple[int, ...]) -> list[Array]:
    """Run a text in steps of some lengths. Return the logits of all positions, and the last cache."""
    inputs = {port.name: port for port in made.get_inputs()}
    outputs = [port.name for port in made.get_outputs()]
    caches = [name for name in inputs if name.startswith("past_") and "cross" not in name]
    # Where the length of the cache is declared, it is fixed. TensorScatter needs one in any case.
    free = form.context if form.scatter else 0
    lengths = {name: size if isinstance(size := inputs[name].shape[2], int) else free for name in caches}
    kept = {name: np.zeros((1, form.key_heads, lengths[name], form.head), form.numpy_type) for name in caches}
    fixed = {
        name: np.random.default_rng(len(name)).standard_normal((1, *port.shape[1:])).astype(np.float32)
        for name, port in inputs.items()
        if "cross" in name
    }
    logits, start = [], 0
    for step in steps:
        end = start + step
        feeds = {
            "input_ids": ids[:, start:end].astype(np.int32 if form.dialect == "whisper" else np.int64),
            "attention_mask": np.ones((1, end), np.int64),
            "position_ids": np.arange(start, end)[None],
        }
        feeds = {name: value for name, value in feeds.items() if name in inputs} | fixed | kept
        found = dict(zip(outputs, made.run(outputs, feeds), strict=True))
        logits.append(found["logits"])
        kept = dict(zip(caches, (found[name] for name in outputs[1:]), strict=True))
        start = end
    return [one.astype(np.float64) for one in (np.concatenate(logits, axis=1), *kept.values())]


@functools.cache
def at_once(name: str) -> list[Array]:
    return played(session(model_of(name)), DECODERS[name], text(), (TEXT,))


def off(one: Array, other: Array) -> float:
    """The root mean square of the difference, over that of the values."""
    return float(np.sqrt(np.mean(np.square(one - other)) / np.mean(np.square(one))))


@pytest.mark.parametrize("name", decoder_names())
def test_the_inputs_of_the_suite_run(name: str) -> None:
    for value in session(model_of(name)).run(None, build(name).inputs):
        assert np.isfinite(value.astype(np.float64)).all()


@pytest.mark.parametrize("name", decoder_names())
def test_logits_have_margins_far_above_rounding(name: str) -> None:
    logits = at_once(name)[0]
    assert 1.0 < logits.std() < 6.0
    first, second = np.sort(logits, axis=-1)[..., :-3:-1].transpose(2, 0, 1)
    assert np.median(first - second) > 200 * ROUNDOFF[DECODERS[name].dtype] * logits.std()
    assert len(np.unique(logits.argmax(axis=-1))) > TEXT / 4


@pytest.mark.parametrize("name", decoder_names())
@pytest.mark.parametrize(
    "steps", [(1,) * TEXT, (20, *(1,) * 20), (7, 17, 16)], ids=["single", "half", "chunks"]
)
def test_step_by_step_is_the_same_as_at_once(name: str, steps: tuple[int, ...]) -> None:
    form = DECODERS[name]
    stepwise = played(session(model_of(name)), form, text(), steps)
    for right, found in zip(at_once(name), stepwise, strict=True):
        assert off(right, found) < 64 * ROUNDOFF[form.dtype]


# --- every part matters -----------------------------------------------------------------------------------

Change = Callable[[onnx.ModelProto], None]


def nodes(model: onnx.ModelProto, *op_types: str) -> list[onnx.NodeProto]:
    return [node for node in model.graph.node if node.op_type in op_types]


def weight(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    found: list[onnx.TensorProto] = [one for one in model.graph.initializer if one.name == name]
    return found[0]


def scaled(name: str, factor: float) -> Change:
    def change(model: onnx.ModelProto) -> None:
        tensor = weight(model, name)
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array((values * factor).astype(values.dtype), tensor.name))

    return change


def silenced(part: str) -> Change:
    """Make what the last product of a part gives small, by its weights or their scales."""

    def change(model: onnx.ModelProto) -> None:
        names = {one.name for one in model.graph.initializer}
        (found,) = names & {f"{part}/weight", f"{part}/weight_scales"}
        scaled(found, 2.0**-10)(model)
        if f"{part}/bias" in names:
            scaled(f"{part}/bias", 0.0)(model)

    return change


def without_attribute(name: str, *op_types: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        count = 0
        for node in nodes(model, *op_types):
            kept = [one for one in node.attribute if one.name != name]
            count += len(node.attribute) - len(kept)
            del node.attribute[:]
            node.attribute.extend(kept)
        assert count

    return change


def without_input(index: int, *op_types: str) -> Change:
    def change(model: onnx.ModelProto) -> None:
        count = 0
        for node in nodes(model, *op_types):
            if len(node.input) > index and node.input[index]:
                node.input[index] = ""
                count += 1
        assert count

    return change


def not_turned(model: onnx.ModelProto) -> None:
    for name, value in (("cos_cache", 1.0), ("sin_cache", 0.0)):
        tensor = weight(model, f"model/rotary/{name}")
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array(np.full_like(values, value), tensor.name))


def turned_otherwise(model: onnx.ModelProto) -> None:
    every = [one for node in model.graph.node for one in node.attribute]
    told = [one for one in every if one.name == "interleaved"]
    told = told or [one for one in every if one.name == "rotary_interleaved"]
    assert len(told) in {LAYERS, 2 * LAYERS}
    for one in told:
        one.i = 1 - one.i


def uncapped(model: onnx.ModelProto) -> None:
    (node,) = nodes(model, "Tanh")
    node.op_type = "Identity"


def window_open(model: onnx.ModelProto) -> None:
    """Make the comparison with the oldest visible key always true."""
    (node,) = nodes(model, "Greater")
    node.input[1] = "far"
    model.graph.initializer.append(numpy_helper.from_array(np.array(-(10**6)), "far"))


def parts(name: str) -> Mapping[str, Change]:
    """What may be taken away from a form."""
    form = DECODERS[name]
    feed_forward = {"moe": "moe/down_proj", "whisper": "mlp/fc2", "": "mlp/down_proj"}
    last = feed_forward["moe" if form.experts else "whisper" if form.dialect == "whisper" else ""]
    found: dict[str, Change] = {}
    for layer in range(LAYERS):
        found[f"attention {layer}"] = silenced(f"model/layers.{layer}/attn/o_proj")
        found[f"feed-forward {layer}"] = silenced(f"model/layers.{layer}/{last}")
        if form.dialect == "whisper":
            found[f"cross attention {layer}"] = silenced(f"model/layers.{layer}/cross_attn/o_proj")
    if form.rotary != "none":
        found["positions"] = not_turned
        found["interleaving"] = turned_otherwise
    else:
        found["positions"] = scaled("model/embeddings/position", 0.0)
    if form.soft_cap:
        found["soft cap"] = without_attribute("softcap", "Attention", "GroupQueryAttention")
    if form.final_cap:
        found["final cap"] = uncapped
    if form.window:
        inside = form.dialect == "contrib"
        found["window"] = (
            without_attribute("local_window_size", "GroupQueryAttention") if inside else window_open
        )
    if form.sinks:
        found["sinks"] = without_input(11, "GroupQueryAttention")
    if form.head_norm:
        found["head norm"] = scaled("model/layers.0/attn/q_norm/weight", 0.5)
    if form.zero_points:
        found["zero points"] = without_input(3, "MatMulNBits")
        found["zero points of embeddings"] = without_input(3, "GatherBlockQuantized")
    return found


@pytest.mark.parametrize(("name", "part"), [(name, part) for name in decoder_names() for part in parts(name)])
def test_every_part_matters(name: str, part: str) -> None:
    model = onnx.ModelProto()
    model.CopyFrom(model_of(name))
    parts(name)[part](model)
    spoilt = played(session(model), DECODERS[name], text(), (TEXT,))
    # Rounding is below 64 units at most, see above.
    assert off(at_once(name)[0], spoilt[0]) > max(0.03, 128 * ROUNDOFF[DECODERS[name].dtype])


@pytest.mark.parametrize("name", decoder_names())
def test_every_position_of_the_text_matters_to_later_ones(name: str) -> None:
    form = DECODERS[name]
    changed = text()
    changed[0, 3] = (changed[0, 3] + 1) % VOCABULARY
    other = played(session(model_of(name)), form, changed, (TEXT,))[0]
    right = at_once(name)[0]
    assert off(right[:, :3], other[:, :3]) < 64 * ROUNDOFF[form.dtype]
    assert off(right[:, 4:12], other[:, 4:12]) > 128 * ROUNDOFF[form.dtype]


def test_both_dialects_compute_one_function() -> None:
    def logits(form: DecoderForm) -> Array:
        g = GraphBuilder(seed="one", opset=form.opset)
        add(g, form)
        return played(session(g.model("one")), form, text(), (TEXT,))[0]

    sizes: dict[str, Any] = {"key_heads": 1, "window": 9, "soft_cap": 3.0, "interleaved": True, "what": ""}
    right = logits(DecoderForm(dialect="onnx", opset=23, attention="Attention", **sizes))
    inside: dict[str, Any] = {"packed": True, "rotary": "inside"}
    for more in (inside, {}):
        assert off(right, logits(DecoderForm(dialect="contrib", **more, **sizes))) < 1e-5
    sizes |= {"key_heads": 4, "soft_cap": 0.0}
    right = logits(DecoderForm(dialect="onnx", opset=24, attention="Attention", **sizes))
    assert off(right, logits(DecoderForm(dialect="contrib", attention="MultiHeadAttention", **sizes))) < 1e-5
    sizes["window"] = 0
    right = logits(DecoderForm(dialect="onnx", opset=24, attention="Attention", **sizes))
    scattered = DecoderForm(dialect="onnx", opset=24, attention="Attention", scatter=True, **sizes)
    assert off(right, logits(scattered)) < 1e-5


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_is_left_out_is_refused_by_the_cpu_provider(name: str) -> None:
    with pytest.raises(Exception, match="Could not find an implementation"):
        session(model_of(name)).run(None, build(name).inputs)
