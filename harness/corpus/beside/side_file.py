"""The side file: ``resnet.onnx.toml`` beside ``resnet.onnx`` has settings of the model."""

from pathlib import Path

import msgspec

from harness.core.agreement.agree_key import agree_problems
from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.structure import FilePlace, deviations
from harness.core.files.toml_text import toml_table
from harness.core.records.model_settings import ModelSettings, contradicting_inputs
from harness.core.text.errors import one_line
from harness.corpus.model.model_errors import InputError, SettingsError, blame


def side_file(model: Path) -> Path:
    """Return the path of a model's side file, which need not exist."""
    return model.with_name(f"{model.name}.toml")


def read_side_file(model: Path) -> ModelSettings:
    """Return the settings in the side file of a model, if there is one.

    Raises:
        SettingsError: It has wrong settings.
        InputError: It cannot be read, or is not TOML in UTF-8.
    """
    path = side_file(model)
    with blame(path, InputError):
        try:
            content = read_regular(path, MOST_SETTINGS)
        except FileNotFoundError:
            return ModelSettings()
        try:
            table = toml_table(content)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    place = FilePlace(path.name)
    problems = [*deviations(table, msgspec.inspect.type_info(ModelSettings), place)]
    problems += contradicting_inputs(table.get("inputs"), place.key("inputs"))
    problems += agree_problems(table.get("agree"), place.key("agree"), None)
    if problems:
        # The error has the path; only the place within the file is missing.
        first = problems[0]
        more = f" ({len(problems)} problems in all)" if len(problems) > 1 else ""
        where = first.where.removeprefix(f"{path.name}: ")
        raise SettingsError(path, one_line(f"{where}: {first.what}; {first.hint}{more}"))
    return msgspec.convert(table, ModelSettings)
