"""The sessions of a folder as one model, which the CPU EP computes in one run: the golden of the folder.

It also gives the values between the sessions, so that a wrong one names its stage.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.text.errors import one_line
from harness.corpus.beside.file_state import files_state
from harness.corpus.beside.genai_config import CONFIG_NAME, GenaiConfig, read_genai_config
from harness.corpus.beside.session_chain import SessionChain, Stage, StageCall, chain_of
from harness.corpus.caches.cache import cache_root, fill_intact
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import COMPOSED_FOLDER, MODEL_FILE, digest_of
from harness.corpus.load_case import load_case
from harness.corpus.model.external import external_files
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean, load_model
from harness.corpus.suites.suite import open_file

if TYPE_CHECKING:
    import onnx

_FORMAT = 1
"""Increase it when composed models change although their parts do not."""

_INSIDE = 1 << 30
"""Bytes of weights up to which they are inside the composed model."""

_SEQUENCE_RANK = 3
"""Axes of a value that has a vector for each token: texts, positions, elements."""


class _UnjoinableError(Exception):
    """The models of a folder cannot be one model; the message is the reason."""


def is_chained(case: Case) -> bool:
    """Return whether a model lies in a folder of several sessions.

    Raises:
        ConfigError: ``genai_config.json`` is broken, or does not fit the models beside it.
        ModelError: A model of the folder is broken.
    """
    config = read_genai_config(case.model_path.parent)
    return config is not None and chain_of(config, case.model_path.parent) is not None


def chained_case(case: Case) -> Case | str:
    """Return a model as it is, or the whole folder for the model of a folder that gives its logits.

    Returns:
        Why the folder is not played in the cell of this model.

    Raises:
        ConfigError: ``genai_config.json`` is broken, or does not fit the models beside it.
        ModelError: A model of the folder is broken.
        UsageError: The cache cannot be written.
    """
    if case.chain is not None:
        return case
    folder = case.model_path.parent
    config = read_genai_config(folder)
    chain = None if config is None else chain_of(config, folder)
    if config is None or chain is None or isinstance(chain, str):
        return chain if isinstance(chain, str) else case
    if case.model_path != chain.player:
        own = next((stage.name for stage in chain.stages if stage.file == case.model_path), "")
        what = f"it is the stage {own!r} of its folder" if own else "it is no stage of its folder"
        return f"{what}, all stages of which are played in the cell of {chain.player.name}"
    try:
        path = _composed(config, chain)
    except _UnjoinableError as error:
        return str(error)
    sizes = case.recipe.given if case.recipe is not None else {}
    whole = load_case(open_file(path), path.name, sizes)
    return msgspec.structs.replace(
        whole, chain=chain, state=case.state, owner=case.owner, rtol=case.rtol, atol=case.atol
    )


def _composed(config: GenaiConfig, chain: SessionChain) -> Path:
    """Return the composed model in the cache; it is made once."""
    files = []
    for stage in chain.stages:
        with blame(stage.file):
            files += [stage.file, *external_files(load_lean(stage.file), stage.file)]
    state = files_state(files)
    name = digest_of(_FORMAT, state.text if state else "", *files, repr(config))

    def build(folder: Path) -> None:
        import onnx

        model = _joined(chain)
        outside = sum(len(one.raw_data) for one in model.graph.initializer) > _INSIDE
        onnx.save_model(model, folder / MODEL_FILE, save_as_external_data=outside, location="weights.bin")
        (folder / CONFIG_NAME).write_bytes(msgspec.json.encode(_described(config, model)))

    return fill_intact(cache_root() / COMPOSED_FOLDER / name, build) / MODEL_FILE


def _joined(chain: SessionChain) -> "onnx.ModelProto":
    """Return the models that run for a prompt as one model.

    Raises:
        _UnjoinableError: They cannot be one.
    """
    import onnx

    whole = onnx.ModelProto(producer_name="ort-ep-harness")
    whole.graph.name = "folder"
    parts = [(stage, stage.prompt) for stage in chain.stages if stage.prompt is not None]
    models = _of_one_opset({stage.name: _with_weights(stage.file) for stage, _ in parts})
    opsets: dict[str, int] = {}
    for stage, call in parts:
        model = models[stage.name]
        whole.ir_version = max(whole.ir_version, model.ir_version)
        opsets |= {one.domain: one.version for one in model.opset_import}
        whole.functions.extend(model.functions)
        _add(whole.graph, model.graph, stage, call, chain)
    if len({(one.domain, one.name) for one in whole.functions}) < len(whole.functions):
        raise _UnjoinableError("two models of its folder have functions of one name")
    whole.opset_import.extend(onnx.helper.make_opsetid(*one) for one in opsets.items())
    own = [one for one in whole.graph.output if one.name in chain.texts]
    between = [one for one in whole.graph.output if one.name not in chain.texts]
    del whole.graph.output[:]
    whole.graph.output.extend((*own, *between))
    return whole


def _with_weights(path: Path) -> "onnx.ModelProto":
    import onnx

    with blame(path):
        model = load_model(path)
        external_files(model, path)  # they are inside the folder
        onnx.load_external_data_for_model(model, str(path.parent))
    return model


def _of_one_opset(models: dict[str, "onnx.ModelProto"]) -> dict[str, "onnx.ModelProto"]:
    """Return models with one version of each domain; older versions of ONNX's operators are converted."""
    from onnx import version_converter

    versions: dict[str, dict[str, int]] = {}
    for name, model in models.items():
        for one in model.opset_import:
            versions.setdefault(one.domain or "", {})[name] = one.version
    for domain, by_model in versions.items():
        newest = max(by_model.values())
        for name, version in by_model.items():
            if version == newest:
                continue
            told = f"its models have versions {version} and {newest} of the operators of {domain or 'ONNX'}"
            if domain:
                raise _UnjoinableError(told)
            try:
                models[name] = version_converter.convert_version(models[name], newest)
            except Exception as error:  # the converter raises errors of any kind
                what = f"{told}, and onnx cannot convert {name}: {one_line(error, 120)}"
                raise _UnjoinableError(what) from error
    return models


def _add(
    whole: "onnx.GraphProto", graph: "onnx.GraphProto", stage: Stage, call: StageCall, chain: SessionChain
) -> None:
    """Add the nodes and weights of a model under the names of the folder."""
    import onnx

    weights = {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}
    computed = {name for node in graph.node for name in node.output}
    names = {name: f"{stage.name}/{name}" for name in (*weights, *computed) if name}
    names |= {own: value for own, value in call.outputs.items() if own in computed} | call.inputs
    _rename(graph, names, stage.name)
    whole.node.extend(graph.node)
    for own, value in call.outputs.items():
        if own not in computed:  # an input or a weight itself
            whole.node.append(
                onnx.helper.make_node("Identity", [names[own]], [value], name=f"{stage.name}/{own}/output")
            )
    whole.initializer.extend(graph.initializer)
    whole.sparse_initializer.extend(graph.sparse_initializer)
    there = {one.name for one in (*whole.input, *whole.output)}
    shared = not chain.once.issuperset(call.outputs.values())
    for one in graph.input:
        taken = call.inputs.get(one.name)
        if taken is not None and taken not in there and taken not in chain.between:
            there.add(taken)
            whole.input.append(_declared(one, taken, stage, shared=shared))
    for one in graph.output:
        given = call.outputs.get(one.name)
        if given is not None and (given in chain.texts or _is_judged(one, once=given in chain.once)):
            whole.output.append(_declared(one, given, stage, shared=shared))


def _is_judged(value: "onnx.ValueInfoProto", *, once: bool) -> bool:
    """Return whether a value between sessions is compared: it is for each token, or all tokens share it."""
    kind = value.type.tensor_type
    floats = {1, 10, 11, 16}  # float32, float16, float64, bfloat16
    rank = len(kind.shape.dim) if kind.HasField("shape") else 0
    return kind.elem_type in floats and (rank > 0 if once else rank == _SEQUENCE_RANK)


def _declared(one: "onnx.ValueInfoProto", name: str, stage: Stage, *, shared: bool) -> "onnx.ValueInfoProto":
    """Return a declaration under the folder's name.

    A symbolic size of a session that only the prompt has, such as the length of an encoder's text, is
    another one than that of the same name in the decoder; the batch is one.
    """
    import onnx

    copied = onnx.ValueInfoProto()
    copied.CopyFrom(one)
    copied.name = name
    if not shared:
        for axis, dim in enumerate(copied.type.tensor_type.shape.dim):
            if dim.dim_param and axis:
                dim.dim_param = f"{stage.name}_{dim.dim_param}"
    return copied


def _rename(graph: "onnx.GraphProto", names: Mapping[str, str], stage: str) -> None:
    """Rename the values and nodes of a graph, and of the bodies in it."""
    for weight in graph.initializer:
        weight.name = names.get(weight.name, weight.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        if node.name:
            node.name = f"{stage}/{node.name}"
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]
        for body in _bodies(node):
            own = {one.name for one in (*body.input, *body.initializer)}
            own |= {name for inner in body.node for name in inner.output}
            inside = dict(names) | {name: f"{stage}/{name}" for name in own if name}
            _rename(body, inside, stage)
            for port in (*body.input, *body.output):
                port.name = inside.get(port.name, port.name)
            del body.value_info[:]


def _bodies(node: "onnx.NodeProto") -> "Iterable[onnx.GraphProto]":
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _described(config: GenaiConfig, model: "onnx.ModelProto") -> dict[str, Any]:
    """Return the configuration of the composed model: that of one decoder, with the names that it has."""
    decoder = config.model.decoder
    there = {one.name for one in (*model.graph.input, *model.graph.output)}
    sizes = ("num_hidden_layers", "num_key_value_heads", "head_size")
    found: dict[str, Any] = {"filename": MODEL_FILE} | {key: getattr(decoder, key) for key in sizes}
    for key in ("inputs", "outputs"):
        names = msgspec.structs.asdict(getattr(decoder, key))
        found[key] = {
            role: name
            for role, name in names.items()
            if name in there or ("%d" in name and name.replace("%d", "0") in there)
        }
    limits = ("context_length", "vocab_size", "pad_token_id")
    return {"model": {"decoder": found} | {key: getattr(config.model, key) for key in limits}}
