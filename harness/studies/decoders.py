"""Models that generate text: which of a suite they are, and the decoder in a folder of onnxruntime-genai."""

from pathlib import Path

import msgspec

from harness.core.text.errors import UsageError, one_line
from harness.corpus.beside.genai_config import CONFIG_NAME, ConfigError, read_genai_config
from harness.corpus.decoders.decoder import Decoder, decoder_of
from harness.corpus.derived.composed_model import chained_case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.suites.suite import Suite, open_file


def decoders_in(suite: Suite) -> tuple[str, ...]:
    """Return the models that generate text with a cache; a broken model is not one of them.

    Raises:
        UsageError: A ``genai_config.json`` is broken, or does not fit its model.
    """
    return tuple(model for model in suite.models() if _generates(suite, model))


def genai_suite(folder: Path) -> Suite:
    """Return a suite of the decoder in a folder that Model Builder of onnxruntime-genai wrote.

    Raises:
        UsageError: The folder has no ``genai_config.json``, it is broken, or its decoder cannot be played.
    """
    try:
        config = read_genai_config(folder)
    except ConfigError as error:
        raise _in_config(error) from error
    if config is None:
        what = f"is a folder without {CONFIG_NAME}"
        raise UsageError.at(folder, what, "name one .onnx file in it, or a folder that Model Builder wrote")
    name = config.model.decoder.filename
    path = folder / Path(name).name
    if path.name != name or not path.is_file():
        hint = "correct model.decoder.filename, or put the model there"
        raise UsageError.at(folder / CONFIG_NAME, f"there is no file {one_line(name, 80)!r} beside it", hint)
    suite = open_file(path)
    try:
        found = _decoder(suite, path.name)
    except ModelError as error:
        raise UsageError.at(error.path, error.cause) from error
    if isinstance(found, str):
        hint = "name the .onnx file to advise on a plain run of it"
        raise UsageError.at(path, f"cannot generate text: {found}", hint)
    return suite


def _generates(suite: Suite, model: str) -> bool:
    try:
        found = _decoder(suite, model, whole=True)
    except ModelError:
        return False  # its cell says what is wrong with it
    # Without a cache, a model may as well be an encoder, whose positions depend on later ones.
    return isinstance(found, Decoder) and bool(found.cache)


def _decoder(suite: Suite, model: str, *, whole: bool = False) -> Decoder | str:
    """Return the roles of a model, or of the ``whole`` folder of several sessions whose logits it gives."""
    try:
        case = load_case(suite, model, {})
        of = chained_case(case) if whole else case
        return of if isinstance(of, str) else decoder_of(of)
    except ConfigError as error:
        raise _in_config(error) from error


def _in_config(error: ConfigError) -> UsageError:
    where = f"{error.path}{error.problem.where.removeprefix(CONFIG_NAME)}"
    return UsageError(msgspec.structs.replace(error.problem, where=where))
