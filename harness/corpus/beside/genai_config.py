"""``genai_config.json``: the description of the model beside it for onnxruntime-genai.

Only keys that name inputs and outputs, or bound them, are read. All other keys belong to onnxruntime-genai.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.structure import FilePlace, deviations
from harness.core.text.errors import Problem, one_line, valid_names
from harness.corpus.model.model_errors import InputError, SettingsError, blame

CONFIG_NAME = "genai_config.json"

LAYER = "%d"
"""Placeholder for the number of the layer in names of the cache."""

_Size = Annotated[int, Meta(ge=0)]
_TokenId = Annotated[int, Meta(ge=0)]


_REWRITE = "write it again with Model Builder of onnxruntime-genai, or remove it"


class ConfigError(SettingsError):
    """``genai_config.json`` is broken, or gives names that the model does not have.

    ``problem`` is the first error.
    """

    def __init__(self, path: Path, problem: Problem, count: int = 1) -> None:
        more = f" ({count} problems in all)" if count > 1 else ""
        where = problem.where.removeprefix(f"{path.name}: ")
        place = f"{where}: " if where != path.name else ""
        self.problem = problem if problem.hint else msgspec.structs.replace(problem, hint=_REWRITE)
        super().__init__(path, f"{place}{problem.what}; {self.problem.hint}{more}")

    @property
    def shown(self) -> str:
        """The error in two lines: where and what, and what is valid."""
        where = f"{self.path.parent.name}/{self.problem.where}"
        return str(msgspec.structs.replace(self.problem, where=where))


class DecoderInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the decoder's inputs; those of the cache have ``%d`` for the layer."""

    input_ids: str = "input_ids"
    inputs_embeds: str = "inputs_embeds"
    attention_mask: str = "attention_mask"
    position_ids: str = "position_ids"
    past_key_names: str = "past_key_values.%d.key"
    past_value_names: str = "past_key_values.%d.value"
    past_names: str = ""
    cross_past_key_names: str = ""
    cross_past_value_names: str = ""
    encoder_hidden_states: str = "encoder_hidden_states"
    encoder_attention_mask: str = "encoder_attention_mask"


class DecoderOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the decoder's outputs."""

    logits: str = "logits"
    present_key_names: str = "present.%d.key"
    present_value_names: str = "present.%d.value"
    present_names: str = ""


class SlidingWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A cache that holds only the newest positions."""

    slide_key_value_cache: bool = True
    window_size: int = 0


class SessionPart(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the session of one model; each item of ``provider_options`` is a provider with its own."""

    provider_options: list[dict[str, dict[str, str | bool | int | float]]] = []
    enable_cpu_mem_arena: bool | None = None
    enable_mem_pattern: bool | None = None


class EncoderInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Names of inputs of an encoder that the decoder has, too."""

    attention_mask: str = "attention_mask"


class EncoderOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Names of an encoder's outputs; those of the cache have ``%d`` for the layer."""

    encoder_outputs: str = "encoder_outputs"
    encoder_hidden_states: str = "encoder_hidden_states"
    cross_present_key_names: str = "present_key_cross_%d"
    cross_present_value_names: str = "present_value_cross_%d"


class EncoderPart(msgspec.Struct, frozen=True, kw_only=True):
    """The encoder beside a decoder; no file name for none."""

    filename: str = ""
    session_options: SessionPart | None = None
    inputs: EncoderInputs = EncoderInputs()
    outputs: EncoderOutputs = EncoderOutputs()


class VisionOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Name of the output of a model of pictures."""

    image_features: str = "image_features"


class VisionPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model of pictures; no file name for none."""

    filename: str = ""
    session_options: SessionPart | None = None
    outputs: VisionOutputs = VisionOutputs()


class SpeechOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Name of the output of a model of sounds."""

    audio_features: str = "audio_features"


class SpeechPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model of sounds; no file name for none."""

    filename: str = ""
    session_options: SessionPart | None = None
    outputs: SpeechOutputs = SpeechOutputs()


class EmbeddingInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the inputs of a model of embeddings."""

    input_ids: str = "input_ids"
    image_features: str = "image_features"
    audio_features: str = "audio_features"


class EmbeddingOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """Name of the output of a model of embeddings."""

    inputs_embeds: str = "inputs_embeds"


class EmbeddingPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model of embeddings; no file name for none."""

    filename: str = ""
    session_options: SessionPart | None = None
    inputs: EmbeddingInputs = EmbeddingInputs()
    outputs: EmbeddingOutputs = EmbeddingOutputs()


class PipelinePart(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a decoder that is divided into several.

    ``output_names_forwarder`` renames outputs for later models. A model runs on the prompt, for later tokens,
    or for both.
    """

    filename: str = ""
    session_options: SessionPart | None = None
    inputs: list[str] = []
    outputs: list[str] = []
    output_names_forwarder: dict[str, str] = {}
    run_on_prompt: bool = True
    run_on_token_gen: bool = True


class DecoderPart(msgspec.Struct, frozen=True, kw_only=True):
    """The decoder: its file and its sizes; 0 for a missing size."""

    filename: str = "model.onnx"
    num_hidden_layers: _Size = 0
    num_key_value_heads: int = 0
    head_size: int = 0
    inputs: DecoderInputs = DecoderInputs()
    outputs: DecoderOutputs = DecoderOutputs()
    sliding_window: SlidingWindow = SlidingWindow(slide_key_value_cache=False)
    session_options: SessionPart = SessionPart()
    pipeline: list[dict[str, PipelinePart]] = []


class ModelPart(msgspec.Struct, frozen=True, kw_only=True):
    """The model: its limits, its decoder, and the models beside it; 0 for a missing limit."""

    decoder: DecoderPart = DecoderPart()
    encoder: EncoderPart = EncoderPart()
    vision: VisionPart = VisionPart()
    speech: SpeechPart = SpeechPart()
    embedding: EmbeddingPart = EmbeddingPart()
    image_token_id: _TokenId | None = None
    audio_token_id: _TokenId | None = None
    context_length: _Size = 0
    vocab_size: _Size = 0
    pad_token_id: _TokenId = 0


class GenaiConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the file that are read."""

    model: ModelPart


def read_genai_config(folder: Path) -> GenaiConfig | None:
    """Return the configuration in a folder; None if there is none.

    Raises:
        ConfigError: It is not JSON in UTF-8, or a key is missing or has a value of a wrong type.
    """
    path = folder / CONFIG_NAME
    with blame(path, InputError):
        try:
            content = read_regular(path, MOST_SETTINGS)
        except FileNotFoundError:
            return None
    try:
        table = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = Problem(where=CONFIG_NAME, what=f"no JSON: {one_line(error, 120)}", hint=_REWRITE)
        raise ConfigError(path, problem) from error
    if not isinstance(table, dict):
        what = f"expected an object, got {type(table).__name__}"
        raise ConfigError(path, Problem(where=CONFIG_NAME, what=what, hint=_REWRITE))
    problems = [*_misspelled(table, GenaiConfig, FilePlace(CONFIG_NAME))]
    known = _known(table, GenaiConfig)
    problems += deviations(known, msgspec.inspect.type_info(GenaiConfig), FilePlace(CONFIG_NAME))
    if problems:
        raise ConfigError(path, problems[0], len(problems))
    return msgspec.convert(known, GenaiConfig)


def _known(table: Mapping[str, Any], kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return a table without the keys that are not read."""
    hints = get_type_hints(kind)
    return {
        key: _known_value(value, hints[key])
        for key, value in table.items()
        if key in hints and value is not None
    }


def _known_value(value: Any, hint: Any) -> Any:
    """Return a value of a declared type without the keys that are not read, at any depth."""
    hint = _plain(hint)
    if _is_struct(hint):
        return _known(value, hint) if isinstance(value, dict) else value
    inner = get_args(hint)[-1] if get_origin(hint) in (dict, list) else None
    if get_origin(hint) is list and isinstance(value, list):
        return [_known_value(item, inner) for item in value]
    if get_origin(hint) is dict and isinstance(value, dict):
        return {key: _known_value(item, inner) for key, item in value.items()}
    return value


def _plain(hint: Any) -> Any:
    """Return the type itself where None is allowed, too."""
    options = [one for one in get_args(hint) if one is not NoneType]
    return options[0] if get_origin(hint) is UnionType else hint


def _is_struct(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _misspelled(table: Mapping[str, Any], kind: type[msgspec.Struct], place: FilePlace) -> Iterator[Problem]:
    """Yield keys that nearly equal a missing key that is read: a default would hide the mistake."""
    hints = get_type_hints(kind)
    missing = [name for name in hints if name not in table]
    for key, value in table.items():
        if key in hints:
            nested = _plain(hints[key])
            if _is_struct(nested) and isinstance(value, dict):
                yield from _misspelled(value, nested, place.key(key))
        elif key.lower().replace("-", "_") in missing or _typo(key, missing):
            yield Problem(where=str(place), what=f"unknown key {key!r}", hint=valid_names(key, missing))


def _typo(key: str, names: list[str]) -> bool:
    """Return whether a key equals a name except for one or two neighbouring letters, as after a slip."""
    return any(
        (abs(len(key) - len(name)) <= 1 and sorted(key.lower()) == sorted(name))
        or key in (f"{name}s", name.removesuffix("s"))
        for name in names
    )
