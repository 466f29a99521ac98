"""The roles of a decoder's inputs and outputs, in the exports of several tools."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.annex.made.decoders.roster import DECODERS, decoder_names
from harness.core.values.value import Tensor
from harness.corpus.beside.file_state import model_state
from harness.corpus.beside.genai_config import CONFIG_NAME, ConfigError
from harness.corpus.case import Case
from harness.corpus.decoders.decoder import CachePair, Decoder, decoder_of
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_file, open_folder
from harness.corpus.suites.suites import open_suite

IDS, FLOAT, BOOL, INT32 = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32
Ports = dict[str, tuple[int, tuple[Any, ...]]]

TEXTS: Ports = {"input_ids": (IDS, ("batch", "sequence"))}
LOGITS: Ports = {"logits": (FLOAT, ("batch", "sequence", 512))}


def write(home: Path, inputs: Ports, outputs: Ports, nodes: Any = (), weights: Any = ()) -> Path:
    """Write a model of inputs and outputs, which nothing need connect."""

    def declared(ports: Ports) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in ports.items()]

    graph = helper.make_graph(list(nodes), "g", declared(inputs), declared(outputs), list(weights))
    path = home / "model.onnx"
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    return path


def case_of(path: Path) -> Case:
    return load_case(open_file(path), path.name, {})


def roles(home: Path, inputs: Ports, outputs: Ports, nodes: Any = (), weights: Any = ()) -> Decoder | str:
    return decoder_of(case_of(write(home, inputs, outputs, nodes, weights)))


def decoder(home: Path, inputs: Ports, outputs: Ports, nodes: Any = (), weights: Any = ()) -> Decoder:
    found = roles(home, inputs, outputs, nodes, weights)
    assert isinstance(found, Decoder), found
    return found


def grown(names: tuple[str, str], before: tuple[Any, ...], after: tuple[Any, ...]) -> tuple[Ports, Ports]:
    """A cache of two layers; the names have a place for the layer."""
    past, present = names
    layers = range(2)
    return (
        {past.format(layer): (FLOAT, before) for layer in layers},
        {present.format(layer): (FLOAT, after) for layer in layers},
    )


BEFORE, AFTER = ("batch", 4, "past", 16), ("batch", 4, "past + sequence", 16)


@pytest.mark.parametrize(
    ("past", "present"),
    [
        ("past_key_values.{}.key", "present.{}.key"),
        ("past_key_values_{}_key", "present_key_values_{}_key"),
        ("past_key_self_{}", "present_key_self_{}"),
        ("past_{}_key", "present_{}_key"),
        ("past_{}", "present_{}"),
        ("k_cache_in_{}", "k_cache_out_{}"),
        ("key_cache.{}", "new_key_cache.{}"),
        ("in_cache_k{}", "out_cache_k{}"),
        ("pastKey{}", "presentKey{}"),
        ("kv_cache_{}", "updated_kv_cache_{}"),
        ("past_key_values.{}.decoder.key", "present.{}.decoder.key"),
    ],
)
def test_a_cache_is_found_by_names_that_are_alike(tmp_path: Path, past: str, present: str) -> None:
    inputs, outputs = grown((past, present), BEFORE, AFTER)
    found = decoder(tmp_path, TEXTS | inputs, LOGITS | outputs)
    assert found.cache == tuple(
        CachePair(past=past.format(layer), present=present.format(layer), axis=2) for layer in (0, 1)
    )
    assert (found.tokens, found.logits, found.vocabulary) == ("input_ids", "logits", 512)
    assert (found.positions, found.mask, found.fixed, found.context) == ("", "", (), None)
    assert not found.shares_buffer


@pytest.mark.parametrize(
    ("before", "after", "axis"),
    [
        (("batch", 4, "past", 16), ("batch", 4, "total", 16), 2),
        ((2, "batch", 4, "past", 16), (2, "batch", 4, "total", 16), 3),  # GPT-2: keys and values together
        (("batch", "past", 4, 16), ("batch", "total", 4, 16), 1),
        (("batch", "past", 64), ("batch", "total", 64), 1),
        (("batch", 4, 16, "past"), ("batch", 4, 16, "total"), 3),  # keys that are transposed already
        (("batch", 4, "length", 16), ("batch", 4, "length", 16), 2),
        ((None, 4, None, 16), (None, 4, None, 16), 2),
        (("batch", "heads", "past_sequence", "size"), ("b", "h", "total_sequence", "s"), 2),
        ((1, 4, "past", 16), (1, 4, "past + 1", 16), 2),
    ],
)
def test_the_axis_of_the_positions_is_the_one_that_grows(
    tmp_path: Path, before: tuple[Any, ...], after: tuple[Any, ...], axis: int
) -> None:
    inputs, outputs = grown(("past.{}", "present.{}"), before, after)
    texts: Ports = {"input_ids": (IDS, (before[0] if before[0] != 2 else "batch", "sequence"))}
    found = decoder(tmp_path, texts | inputs, LOGITS | outputs)
    assert [pair.axis for pair in found.cache] == [axis, axis]


def test_names_without_a_common_word_are_paired_in_their_order(tmp_path: Path) -> None:
    inputs: Ports = {f"past.{name}": (FLOAT, BEFORE) for name in ("a", "b")}
    outputs: Ports = dict.fromkeys(("1203", "1311"), (FLOAT, AFTER))
    found = decoder(tmp_path, TEXTS | inputs, LOGITS | outputs)
    assert [(pair.past, pair.present) for pair in found.cache] == [("past.a", "1203"), ("past.b", "1311")]
    del outputs["1311"]
    assert roles(tmp_path, TEXTS | inputs, LOGITS | outputs) == (
        "no output takes the place of its input 'past.a' in the next step"
    )


def test_what_an_encoder_made_stays_fixed(tmp_path: Path) -> None:
    inputs, outputs = grown(("past_key_values.{}.decoder.key", "present.{}.decoder.key"), BEFORE, AFTER)
    frames = ("batch", 4, "encoder_sequence", 16)
    fixed, kept = grown(("past_key_values.{}.encoder.key", "present.{}.encoder.key"), frames, frames)
    others: Ports = {
        "encoder_hidden_states": (FLOAT, ("batch", "encoder_sequence", 64)),
        "encoder_attention_mask": (IDS, ("batch", "encoder_sequence")),
        "decoder_input_ids": (IDS, ("batch", "sequence")),
        "use_cache_branch": (BOOL, (1,)),
    }
    found = decoder(tmp_path, others | inputs | fixed, LOGITS | outputs | kept)
    assert found.tokens == "decoder_input_ids"
    assert found.fixed == ("encoder_hidden_states", "encoder_attention_mask", *fixed)
    assert [pair.past for pair in found.cache] == [*inputs]
    assert found.constants == {"use_cache_branch": True}
    assert found.mask == ""


def test_a_model_without_a_cache_is_a_decoder_too(tmp_path: Path) -> None:
    inputs: Ports = {
        **TEXTS,
        "attention_mask": (IDS, ("batch", "sequence")),
        "position_ids": (IDS, ("batch", "sequence")),
        "num_logits_to_keep": (IDS, ()),
    }
    found = decoder(tmp_path, inputs, LOGITS)
    assert (found.cache, found.mask, found.positions) == ((), "attention_mask", "position_ids")
    assert found.constants == {"num_logits_to_keep": 0}


@pytest.mark.parametrize(
    ("name", "dims", "count"),
    [
        ("cache_position", ("sequence",), "places"),
        ("write_indices", ("batch",), "start"),
        ("start_pos", (), "start"),
    ],
)
def test_an_input_tells_where_a_cache_of_fixed_length_is_written(
    tmp_path: Path, name: str, dims: tuple[Any, ...], count: str
) -> None:
    shape = ("batch", 4, 128, 16)
    inputs: Ports = {
        **TEXTS,
        name: (IDS, dims),
        "attention_mask": (IDS, ("batch", 128)),
        "past.0": (FLOAT, shape),
    }
    found = decoder(tmp_path, inputs, {**LOGITS, "present.0": (FLOAT, shape)})
    assert found.counts == {name: count}
    assert (found.cache_length, found.context, found.masks_cache) == (128, 128, True)
    assert found.cache == (CachePair(past="past.0", present="present.0", axis=2),)
    assert not found.shares_buffer


@pytest.mark.parametrize(("mode", "told"), [("linear", 1), ("circular", None)])
def test_tensor_scatter_tells_the_axis_of_a_cache_of_fixed_length(
    tmp_path: Path, mode: str, told: int | None
) -> None:
    shape = ("batch", 128, 4, 16)
    inputs: Ports = {**TEXTS, "position_ids": (IDS, ("batch", "sequence")), "past.0": (FLOAT, shape)}
    node = helper.make_node("TensorScatter", ["past.0", "new", "at"], ["present.0"], axis=1, mode=mode)
    found = roles(tmp_path, inputs, {**LOGITS, "present.0": (FLOAT, shape)}, [node])
    if told is None:
        assert isinstance(found, str)  # it keeps the newest positions only
        assert "no operator and no input of the model shows where new tokens are written" in found
    else:
        assert isinstance(found, Decoder), found
        assert found.cache == (CachePair(past="past.0", present="present.0", axis=told),)
        assert (found.cache_length, found.shares_buffer, found.takes_lengths) == (128, True, False)


def test_the_tables_of_positions_bound_the_context(tmp_path: Path) -> None:
    tables = [numpy_helper.from_array(np.zeros((77, 8), np.float32), name) for name in ("cos", "sin")]
    nodes = [
        helper.make_node(
            "RotaryEmbedding", ["x", "position_ids", "cos", "sin"], ["y"], domain="com.microsoft"
        ),
        helper.make_node("Gather", ["places", "position_ids"], ["z"]),
    ]
    inputs: Ports = {**TEXTS, "position_ids": (IDS, ("batch", "sequence"))}
    assert decoder(tmp_path, inputs, LOGITS, nodes, tables).context == 77
    places = numpy_helper.from_array(np.zeros((40, 8), np.float32), "places")
    assert decoder(tmp_path, inputs, LOGITS, nodes, [*tables, places]).context == 40


@pytest.mark.parametrize(
    ("inputs", "outputs", "why"),
    [
        ({"image": (FLOAT, ("n", 3, 8, 8))}, LOGITS, "it has no input of token ids"),
        (TEXTS, {"hidden": (FLOAT, ("batch", 512))}, "it has no output of logits"),
        (TEXTS | {"past_seq_len": (IDS, (1,))}, LOGITS, "the role of its input 'past_seq_len'"),
        (TEXTS | {"token_type_ids": (IDS, ("b", "s"))}, LOGITS, "the role of its input 'token_type_ids'"),
        (TEXTS | {"position_ids": (IDS, (3, "b", "s"))}, LOGITS, "the role of its input 'position_ids'"),
        ({"input_ids": (IDS, ("batch", 1))}, LOGITS, "its input 'input_ids' has a fixed length of 1"),
        (TEXTS, {"logits": (FLOAT, ("batch", 1, 512))}, "its output 'logits' has the last position only"),
        (
            TEXTS | {"past.0": (FLOAT, (1, 4, 128, 16))},
            LOGITS | {"present.0": (FLOAT, (1, 4, 128, 16))},
            "128, and no operator and no input of the model shows where new tokens are written",
        ),
        (
            TEXTS | {"past.0": (FLOAT, (1, 4, 128, 16)), "past.1": (FLOAT, (1, 4, "past", 16))},
            LOGITS | {"present.0": (FLOAT, (1, 4, 128, 16)), "present.1": (FLOAT, (1, 4, "total", 16))},
            "'past.0' has a fixed length of 128, and another part of it has another length, or none",
        ),
        (
            TEXTS
            | {"cache_position": (IDS, ("sequence",)), "past.0": (FLOAT, (1, 4, 128, 16))}
            | {"attention_mask": (IDS, (1, 99))},
            LOGITS | {"present.0": (FLOAT, (1, 4, 128, 16))},
            "its input 'attention_mask' has a fixed length, which is not that of its cache",
        ),
        (
            TEXTS | {"past.0": (FLOAT, ("batch", 4, "past", 16))},
            LOGITS | {"present.0": (FLOAT, ("batch", 4, "sequence", 16))},
            "its output 'present.0' does not have all positions of the cache",
        ),
    ],
)
def test_what_cannot_be_fed_step_by_step_says_why(
    tmp_path: Path, inputs: Ports, outputs: Ports, why: str
) -> None:
    told = roles(tmp_path, inputs, outputs)
    assert isinstance(told, str)
    assert why in told


# --- genai_config.json -----------------------------------------------------------------------------------


def config(**changes: Any) -> dict[str, Any]:
    decoder: dict[str, Any] = {
        "filename": "model.onnx",
        "num_hidden_layers": 2,
        "inputs": {"input_ids": "ids", "past_key_names": "pk_%d", "past_value_names": "pv_%d"},
        "outputs": {"logits": "scores", "present_key_names": "nk_%d", "present_value_names": "nv_%d"},
    }
    model = {"context_length": 99, "vocab_size": 500, "pad_token_id": 7, "decoder": decoder}
    return {"model": model | changes, "search": {"past_present_share_buffer": True}}


def odd_names() -> tuple[Ports, Ports]:
    """Names from which nothing can be told."""
    inputs: Ports = {"ids": (IDS, ("batch", "sequence"))}
    outputs: Ports = {
        "scores": (FLOAT, ("batch", "sequence", 512)),
        "other": (FLOAT, ("batch", "sequence", 3)),
    }
    for layer in (0, 1):
        for part in "kv":
            inputs[f"p{part}_{layer}"] = (FLOAT, BEFORE)
            outputs[f"n{part}_{layer}"] = (FLOAT, AFTER)
    return inputs, outputs


def test_the_configuration_names_what_nothing_else_tells(tmp_path: Path) -> None:
    path = write(tmp_path, *odd_names())
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(config()))
    found = decoder_of(case_of(path))
    assert isinstance(found, Decoder)
    assert [(pair.past, pair.present) for pair in found.cache] == [
        ("pk_0", "nk_0"), ("pv_0", "nv_0"), ("pk_1", "nk_1"), ("pv_1", "nv_1"),
    ]  # fmt: skip
    assert (found.vocabulary, found.context, found.pads_token) == (500, 99, 7)


@pytest.mark.parametrize(
    ("content", "where", "what"),
    [
        (b"{", CONFIG_NAME, "no JSON"),
        (b"\xff\xfe", CONFIG_NAME, "no JSON"),
        (b"[" * 200_000, CONFIG_NAME, "no JSON"),
        (b"[1]", CONFIG_NAME, "expected an object, got list"),
        (b"{}", f"{CONFIG_NAME}", "model"),
        (config(context_length="many"), f"{CONFIG_NAME}: model.context_length", "expected an integer"),
        (config(vocab_size=-1), f"{CONFIG_NAME}: model.vocab_size", "-1"),
        (config(decoder=[1]), f"{CONFIG_NAME}: model.decoder", "expected a table"),
    ],
)
def test_a_broken_configuration_is_told_in_two_lines(
    tmp_path: Path, content: Any, where: str, what: str
) -> None:
    path = write(tmp_path, *odd_names())
    raw = content if isinstance(content, bytes) else msgspec.json.encode(content)
    (tmp_path / CONFIG_NAME).write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        decoder_of(case_of(path))
    problem = caught.value.problem
    assert problem.where == where
    assert what in problem.what
    assert problem.hint
    assert len(str(problem).splitlines()) == 2
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.shown == f"{tmp_path.name}/{problem}"
    assert CONFIG_NAME in str(caught.value)


@pytest.mark.parametrize(
    ("place", "key", "name", "what", "hint"),
    [
        ("inputs", "input_ids", "idz", "the model has no input 'idz'", "did you mean 'ids'?"),
        ("inputs", "past_key_names", "pk_0", "'pk_0' is one name for all layers", "%d"),
        ("inputs", "past_value_names", "px_%d", "the model has no input 'px_0'", "valid: ids, pk_0"),
        ("inputs", "attention_mask", "mask", "the model has no input 'mask'", "valid: ids"),
        ("outputs", "logits", "score", "the model has no output 'score'", "did you mean 'scores'?"),
        ("outputs", "present_key_names", "nx_%d", "the model has no output 'nx_0'", "valid: scores"),
    ],
)
def test_a_name_that_the_model_does_not_have_is_told_with_those_it_has(
    tmp_path: Path, place: str, key: str, name: str, what: str, hint: str
) -> None:
    path = write(tmp_path, *odd_names())
    spoilt = config()
    spoilt["model"]["decoder"][place][key] = name
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(spoilt))
    with pytest.raises(ConfigError) as caught:
        decoder_of(case_of(path))
    problem = caught.value.problem
    assert problem.where == f"{CONFIG_NAME}: model.decoder.{place}.{key}"
    assert problem.what == what
    assert hint in problem.hint


def test_a_key_that_is_nearly_right_is_told(tmp_path: Path) -> None:
    path = write(tmp_path, *odd_names())
    spoilt = config()
    spoilt["model"]["decoder"]["inputs"]["past_keys_name"] = spoilt["model"]["decoder"]["inputs"].pop(
        "past_key_names"
    )
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(spoilt))
    with pytest.raises(ConfigError, match="past_key_names"):
        decoder_of(case_of(path))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"filename": "decoder.onnx"}, "names another file as the decoder: 'decoder.onnx'"),
        ({"pipeline": [{"a": {}}]}, "divides the decoder into a pipeline"),
        ({"sliding_window": {"window_size": 64}}, "its cache slides"),
        ({"inputs": {"inputs_embeds": "ids"}}, "it takes embeddings"),
    ],
)
def test_what_the_configuration_says_it_is_instead(tmp_path: Path, changes: Any, why: str) -> None:
    path = write(tmp_path, *odd_names())
    other = config()
    other["model"]["decoder"] |= changes
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(other))
    told = decoder_of(case_of(path))
    assert isinstance(told, str)
    assert why in told


@pytest.mark.parametrize("name", decoder_names())
def test_the_suite_has_the_same_roles_with_and_without_its_configuration(name: str, tmp_path: Path) -> None:
    case = load_case(open_suite("generate"), name, {})
    found = decoder_of(case)
    form = DECODERS[name]
    assert isinstance(found, Decoder), found
    assert found.vocabulary == 256
    assert len(found.cache) == 4
    assert {pair.axis for pair in found.cache} == {2}
    assert bool(found.mask) == (form.dialect != "whisper" and not form.scatter)
    assert bool(found.positions) == (form.rotary == "nodes")
    assert found.takes_lengths == (form.attention == "GroupQueryAttention")
    assert found.shares_buffer == (found.takes_lengths or form.scatter)
    assert found.cache_length == (form.context if form.static else None)
    assert len(found.fixed) == (4 if form.dialect == "whisper" else 0)
    path = tmp_path / "model.onnx"
    path.write_bytes(case.model_path.read_bytes())
    alone = decoder_of(case_of(path))
    assert isinstance(alone, Decoder), alone
    context = None if form.dialect == "whisper" else form.context
    assert alone == msgspec.structs.replace(found, context=context)


def test_sizes_that_model_builder_leaves_open_come_from_the_configuration(tmp_path: Path) -> None:
    """Its caches have ``kv_cache_dim`` elements, because one of fewer bits has fewer."""
    inputs: Ports = {"input_ids": (IDS, ("batch_size", "sequence_length"))}
    outputs: Ports = {"logits": (FLOAT, ("batch_size", "sequence_length", 500))}
    for part in ("key", "value"):
        shape = ("batch_size", "heads", "past_sequence_length", "kv_cache_dim")
        inputs[f"past_key_values.0.{part}"] = (FLOAT, shape)
        outputs[f"present.0.{part}"] = (FLOAT, (*shape[:2], "total_sequence_length", shape[3]))
    path = write(tmp_path, inputs, outputs)
    told = config()
    told["model"]["decoder"] |= {"num_key_value_heads": 5, "head_size": 48, "inputs": {}, "outputs": {}}
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(told))
    folder = open_folder(tmp_path)

    def heads_and_size(name: str, **dimensions: int) -> tuple[int, ...]:
        value = dict(load_case(folder, path.name, dimensions).data_sets[0].inputs)[name]
        assert isinstance(value, Tensor)
        return value.array.shape[1::2]

    assert heads_and_size("past_key_values.0.key") == heads_and_size("past_key_values.0.value") == (5, 48)
    assert heads_and_size("past_key_values.0.key", kv_cache_dim=24) == (5, 24)
    told["model"]["decoder"]["head_size"] = "48"
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(told))
    with pytest.raises(ConfigError, match="head_size"):
        load_case(folder, path.name, {})


def test_a_changed_configuration_is_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, *odd_names())
    before = model_state(path, tmp_path)
    (tmp_path / CONFIG_NAME).write_bytes(msgspec.json.encode(config()))
    assert model_state(path, tmp_path) != before
