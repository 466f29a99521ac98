"""A folder of several sessions that generate text together, as its ``genai_config.json`` chains them.

Three kinds: an encoder and a decoder; models of pictures or sounds, of embeddings, and a decoder; a decoder
that is divided into a pipeline. Values between sessions have names of the whole folder.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from harness.core.text.errors import Problem, one_line, valid_names
from harness.corpus.beside.genai_config import (
    CONFIG_NAME,
    LAYER,
    ConfigError,
    GenaiConfig,
    ModelPart,
    PipelinePart,
    SessionPart,
)
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean

if TYPE_CHECKING:
    import onnx


class StageCall(msgspec.Struct, frozen=True, kw_only=True):
    """How a session is fed, and what becomes of its outputs: own name -> name in the folder."""

    inputs: dict[str, str]
    outputs: dict[str, str]


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a folder.

    Attributes:
        name: The key in the configuration: ``encoder``, ``vision``, ``speech``, ``embedding``, ``decoder``,
            or the key in the pipeline.
        file: Its model.
        prompt: Its use for a prompt; None if it does not run then.
        step: Its use for later tokens, likewise.
        emptied: Own inputs that hold no element for later tokens.
        providers: Provider, as the configuration spells it -> its options; none if it names no provider.
        memory: Options of the session about memory that the configuration sets.
    """

    name: str
    file: Path
    prompt: StageCall | None
    step: StageCall | None
    emptied: tuple[str, ...] = ()
    providers: dict[str, dict[str, str]] = {}
    memory: dict[str, bool] = {}


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """Features of pictures or sounds, and the token whose places in a text they take."""

    value: str
    token: int


class SessionChain(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of a folder in the order in which they run.

    Attributes:
        texts: Values that all sessions of the folder take or give for each token: those of the decoder's
            own inputs and outputs. They keep the names that the configuration gives them.
        player: The file of the model that gives the logits; in its cell the folder is played.
    """

    stages: tuple[Stage, ...]
    features: tuple[Features, ...] = ()
    texts: frozenset[str] = frozenset()
    player: Path

    @property
    def between(self) -> dict[str, str]:
        """Return the values between sessions for a prompt, in order, with the stage that gives each."""
        return {
            value: stage.name
            for stage in self.stages
            if stage.prompt is not None
            for value in stage.prompt.outputs.values()
            if value not in self.texts
        }

    @property
    def once(self) -> frozenset[str]:
        """Return the values between sessions that only the prompt has: later tokens use the same ones."""
        again = {value for stage in self.stages if stage.step for value in stage.step.outputs.values()}
        return frozenset(value for value in self.between if value not in again)

    def stage_of(self, value: str, *, later: bool) -> str:
        """Return the stage that gives a value for the prompt, or for later tokens; else empty."""
        found = ""
        for stage in self.stages:
            call = stage.step if later else stage.prompt
            if call is not None and value in call.outputs.values():
                found = stage.name
        return found or (self.stage_of(value, later=False) if later else "")


class _File:
    """The names of the inputs and outputs of one model of the folder."""

    def __init__(self, path: Path) -> None:
        with blame(path):
            graph: onnx.GraphProto = load_lean(path).graph
        weights = {one.name for one in graph.initializer}
        self.path = path
        self.inputs = [one.name for one in graph.input if one.name not in weights]
        self.outputs = [one.name for one in graph.output]


def chain_of(config: GenaiConfig, folder: Path) -> SessionChain | str | None:
    """Return the sessions of a folder; None if its text needs one session only; else why they cannot be used.

    Raises:
        ConfigError: The configuration names a file, an input or an output that is not there.
        ModelError: A model of the folder is broken.
    """
    model = config.model
    beside = [name for name in _BESIDE if getattr(model, name).filename]
    if model.decoder.pipeline:
        return _unknown(beside) if beside else _pipeline(model, folder)
    if "encoder" in beside:
        return _unknown(beside) if len(beside) > 1 else _encoder_decoder(model, folder)
    if "embedding" in beside:
        return _modalities(model, folder, beside)
    return _unknown(beside) if beside else None


_BESIDE = ("encoder", "vision", "speech", "embedding")


def _unknown(beside: Sequence[str]) -> str:
    names = ", ".join(map(repr, beside))
    return (
        f"{CONFIG_NAME} has {names} beside the decoder, which the harness does not chain in this combination"
    )


def _encoder_decoder(model: ModelPart, folder: Path) -> SessionChain | str:
    encoder = _open(folder, "model.encoder.filename", model.encoder.filename)
    decoder = _open(folder, "model.decoder.filename", model.decoder.filename)
    given, taken = model.encoder.outputs, model.decoder.inputs
    states = [
        name for name in (given.encoder_hidden_states, given.encoder_outputs) if name in encoder.outputs
    ]
    pairs = {taken.encoder_hidden_states: states[0]} if states else {}
    for past, present in (
        (taken.cross_past_key_names, given.cross_present_key_names),
        (taken.cross_past_value_names, given.cross_present_value_names),
    ):
        layers = range(model.decoder.num_hidden_layers) if past else ()
        pairs |= {past.replace(LAYER, str(one)): present.replace(LAYER, str(one)) for one in layers}
    fed = {name: name for name in decoder.inputs}
    for own, output in pairs.items():
        if own in decoder.inputs:
            _there(output, encoder, folder, "model.encoder.outputs")
            fed[own] = f"encoder.{output}"
    mask = model.encoder.inputs.attention_mask
    if taken.encoder_attention_mask in decoder.inputs and mask in encoder.inputs:
        fed[taken.encoder_attention_mask] = f"encoder.{mask}"
    used = set(fed.values())
    if not any(f"encoder.{name}" in used for name in encoder.outputs):
        return f"{CONFIG_NAME} gives the decoder no output of the encoder"
    outputs = {name: f"encoder.{name}" for name in encoder.outputs if f"encoder.{name}" in used}
    call = StageCall(inputs=_prefixed("encoder", encoder.inputs), outputs=outputs)
    return _with_decoder(
        [_stage("encoder", encoder.path, model, model.encoder.session_options, prompt=call)],
        decoder, model, fed,
    )  # fmt: skip


def _modalities(model: ModelPart, folder: Path, beside: Sequence[str]) -> SessionChain | str:
    embedding = _open(folder, "model.embedding.filename", model.embedding.filename)
    decoder = _open(folder, "model.decoder.filename", model.decoder.filename)
    tokens = model.decoder.inputs.input_ids
    names = model.embedding.inputs
    fed = {names.input_ids: tokens}
    features: list[Features] = []
    stages = []
    for name, own, output, token, options in (
        ("vision", names.image_features, model.vision.outputs.image_features, model.image_token_id,
         model.vision.session_options),
        ("speech", names.audio_features, model.speech.outputs.audio_features, model.audio_token_id,
         model.speech.session_options),
    ):  # fmt: skip
        if name not in beside:
            continue
        key = "image_token_id" if name == "vision" else "audio_token_id"
        if token is None:
            return f"{CONFIG_NAME} does not tell the token whose place {name} takes, model.{key}"
        file = _open(folder, f"model.{name}.filename", getattr(model, name).filename)
        _there(output, file, folder, f"model.{name}.outputs")
        call = StageCall(inputs=_prefixed(name, file.inputs), outputs={output: f"{name}.{output}"})
        stages.append(_stage(name, file.path, model, options, prompt=call))
        fed[own] = f"{name}.{output}"
        features.append(Features(value=f"{name}.{output}", token=token))
    if unknown := next((name for name in embedding.inputs if name not in fed), ""):
        return f"the role of the input {unknown!r} of its model of embeddings is not known"
    if missing := next((name for name in fed if name not in embedding.inputs), ""):
        where = "model.embedding.inputs"
        raise _refused(folder, where, "the model has no input {!r}", missing, embedding.inputs)
    given = model.embedding.outputs.inputs_embeds
    _there(given, embedding, folder, "model.embedding.outputs")
    call = StageCall(inputs=fed, outputs={given: f"embedding.{given}"})
    emptied = tuple(own for own, value in fed.items() if value != tokens)
    stages.append(
        _stage(
            "embedding", embedding.path, model, model.embedding.session_options,
            prompt=call, step=call, emptied=emptied,
        )
    )  # fmt: skip
    taken = model.decoder.inputs.inputs_embeds
    if taken not in decoder.inputs:
        where = "model.decoder.inputs.inputs_embeds"
        raise _refused(folder, where, "the model has no input {!r}", taken, decoder.inputs)
    taking = {name: name for name in decoder.inputs} | {taken: f"embedding.{given}"}
    return _with_decoder(stages, decoder, model, taking, features)


def _with_decoder(
    stages: Sequence[Stage],
    decoder: _File,
    model: ModelPart,
    fed: Mapping[str, str],
    features: Sequence[Features] = (),
) -> SessionChain:
    """Return the chain that ends with a decoder, whose values keep their names."""
    call = StageCall(inputs=dict(fed), outputs={name: name for name in decoder.outputs})
    last = _stage("decoder", decoder.path, model, model.decoder.session_options, prompt=call, step=call)
    own = {name for name, value in fed.items() if name == value}
    return SessionChain(
        stages=(*stages, last),
        features=tuple(features),
        texts=frozenset({*own, model.decoder.inputs.input_ids, *decoder.outputs}),
        player=decoder.path,
    )


def _pipeline(model: ModelPart, folder: Path) -> SessionChain | str:
    window = model.decoder.sliding_window
    if window.window_size or window.slide_key_value_cache:
        size = f" of {window.window_size}" if window.window_size else ""
        return f"its prompt goes through the pipeline in windows{size}, which the harness does not lay out"
    parts = {name: part for item in model.decoder.pipeline for name, part in item.items()}
    if len(parts) < sum(len(item) for item in model.decoder.pipeline):
        return "two models of its pipeline have one name"
    files = {}
    for name, part in parts.items():
        where = f"model.decoder.pipeline.{name}"
        files[name] = _open(folder, f"{where}.filename", part.filename)
        for key, listed, there in (
            ("inputs", part.inputs, files[name].inputs),
            ("outputs", part.outputs, files[name].outputs),
        ):
            if odd := next((one for one in listed if one not in there), ""):
                raise _refused(folder, f"{where}.{key}", f"the model has no {key[:-1]} {{!r}}", odd, there)
        if short := next((one for one in files[name].inputs if one not in part.inputs), ""):
            what = "the input {!r} of the model is missing"
            raise _refused(folder, f"{where}.inputs", what, short, files[name].inputs)
    own = _own_outputs(model)
    calls = {
        later: dict(_calls({n: p for n, p in parts.items() if _runs(p, later=later)}, own))
        for later in (False, True)
    }
    player = next((name for name in calls[False] if model.decoder.outputs.logits in parts[name].outputs), "")
    if not player:
        return f"no model of its pipeline gives {model.decoder.outputs.logits!r} for a prompt"
    texts = {value for call in calls[False].values() for value in call.inputs.values()}
    given = {value for call in calls[False].values() for value in call.outputs.values()}
    return SessionChain(
        stages=tuple(
            _stage(
                name, files[name].path, model, part.session_options,
                prompt=calls[False].get(name), step=calls[True].get(name),
            )
            for name, part in parts.items()
        ),
        texts=frozenset((texts - given) | (given & own)),
        player=files[player].path,
    )  # fmt: skip


def _runs(part: PipelinePart, *, later: bool) -> bool:
    return part.run_on_token_gen if later else part.run_on_prompt


def _own_outputs(model: ModelPart) -> set[str]:
    """Return the outputs of the whole decoder: the logits, and the cache."""
    outputs = model.decoder.outputs
    patterns = (outputs.present_key_names, outputs.present_value_names, outputs.present_names)
    layers = range(model.decoder.num_hidden_layers)
    return {outputs.logits, *(one.replace(LAYER, str(layer)) for one in patterns if one for layer in layers)}


def _calls(parts: Mapping[str, PipelinePart], own: set[str]) -> Iterator[tuple[str, StageCall]]:
    """Yield the use of each model of a pipeline; a value that is given twice has a number the second time."""
    stored: dict[str, str] = {}
    given: dict[str, int] = {}
    for name, part in parts.items():
        inputs = {one: stored.get(one, one) for one in part.inputs}
        outputs = {}
        for one in part.outputs:
            kept = part.output_names_forwarder.get(one, one)
            given[kept] = given.get(kept, 0) + 1
            first = kept in own or (given[kept] == 1 and kept not in inputs)
            outputs[one] = kept if first else f"{kept}#{given[kept]}"
            stored[kept] = outputs[one]
        yield name, StageCall(inputs=inputs, outputs=outputs)


def _stage(
    name: str,
    path: Path,
    model: ModelPart,
    options: SessionPart | None,
    *,
    prompt: StageCall | None = None,
    step: StageCall | None = None,
    emptied: tuple[str, ...] = (),
) -> Stage:
    """Return a stage; without session options of its own it has those of the decoder."""
    options = options or model.decoder.session_options
    providers: dict[str, dict[str, str]] = {}
    for item in options.provider_options:
        for provider, its in item.items():
            providers[provider] = {key: _text(value) for key, value in (its or {}).items()}
    stated = {key: getattr(options, key) for key in ("enable_cpu_mem_arena", "enable_mem_pattern")}
    memory = {key: value for key, value in stated.items() if value is not None}
    return Stage(
        name=name, file=path, prompt=prompt, step=step, emptied=emptied, providers=providers, memory=memory
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _prefixed(stage: str, names: Sequence[str]) -> dict[str, str]:
    return {name: f"{stage}.{name}" for name in names}


def _open(folder: Path, where: str, name: str) -> _File:
    """Return a model of the folder.

    Raises:
        ConfigError: It is not there.
        ModelError: It is broken.
    """
    path = folder / Path(name).name
    if not name or path.name != name or not path.is_file():
        there = sorted(one.name for one in folder.glob("*.onnx"))
        raise _refused(folder, where, "there is no file {!r} beside it", one_line(name, 80), there)
    return _File(path)


def _there(output: str, file: _File, folder: Path, where: str) -> None:
    if output not in file.outputs:
        raise _refused(folder, where, "the model has no output {!r}", output, file.outputs)


def _refused(folder: Path, where: str, what: str, name: str, valid: Sequence[str]) -> ConfigError:
    problem = Problem(where=f"{CONFIG_NAME}: {where}", what=what.format(name), hint=valid_names(name, valid))
    return ConfigError(folder / CONFIG_NAME, problem)
