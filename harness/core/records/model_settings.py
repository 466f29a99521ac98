"""Settings of one model that its file lacks: sizes of dimensions, values of inputs, and its task.

The same keys are valid in the matrix (``[[model]]``) and in a file beside the model (``<model>.toml``).
"""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.agreement.agree_key import tasks_by_output
from harness.core.files.structure import FilePlace
from harness.core.records.input_recipe import RANGED, RecipeName
from harness.core.text.errors import Problem

MOST_SIZE = (1 << 31) - 1
"""The largest size of a dimension, and the largest id of a token."""

SettingSize = Annotated[int, Meta(ge=0, le=MOST_SIZE)]
SettingName = Annotated[str, Meta(min_length=1)]
Number = int | float
SettingValue = Number | bool | str


class InputSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The values and shape of a generated input; by default its type and name decide."""

    recipe: Annotated[
        RecipeName | UnsetType, Meta(description="What it is like, in place of a range or a value.")
    ] = UNSET
    low: Annotated[Number | UnsetType, Meta(description="The least value that is drawn; 0 by default.")] = (
        UNSET
    )
    high: Annotated[
        Number | UnsetType, Meta(description="Above every value that is drawn: the length of a vocabulary.")
    ] = UNSET
    value: Annotated[
        SettingValue | UnsetType, Meta(description="The value of every element, in place of a range.")
    ] = UNSET
    shape: Annotated[
        list[SettingSize] | UnsetType,
        Meta(description="The shape, where the model does not declare all of it."),
    ] = UNSET


class ModelSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one model."""

    dimensions: Annotated[
        dict[SettingName, SettingSize],
        Meta(description="Symbolic dimension -> its length, in generated inputs."),
    ] = {}
    fixed: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether sessions get these lengths as fixed ones, as an application gives them with "
            "add_free_dimension_override_by_name."
        ),
    ] = UNSET
    inputs: Annotated[
        dict[SettingName, InputSettings | RecipeName],
        Meta(description="Input -> its generated values: a table, or a recipe by its name."),
    ] = {}
    vary: Annotated[
        list[SettingName],
        Meta(description="Dimensions that vary in the scenario dynamic_shapes, in this order; default: all."),
    ] = []
    agree: Annotated[
        SettingName | dict[SettingName, SettingName] | UnsetType,
        Meta(
            description="The task whose answers are compared beside the values: of the first output, or a "
            "table output -> task. top1, top5, argmax, threshold, boxes, ctc, ids, none, or module:function."
        ),
    ] = UNSET

    @property
    def tasks(self) -> dict[str, str]:
        """Output -> task; the first output is ``FIRST_OUTPUT``."""
        return tasks_by_output(self.agree)

    @property
    def described(self) -> dict[str, InputSettings]:
        """Input -> its settings; the name of a recipe stands for a table with that recipe."""
        return {
            name: InputSettings(recipe=given) if isinstance(given, str) else given
            for name, given in self.inputs.items()
        }

    def over(self, others: "ModelSettings") -> "ModelSettings":
        """Return these settings; settings of the other fill those that are missing."""
        tasks = self.tasks if isinstance(self.agree, str) else others.tasks | self.tasks
        return ModelSettings(
            dimensions=others.dimensions | self.dimensions,
            fixed=others.fixed if self.fixed is UNSET else self.fixed,
            inputs=others.inputs | self.inputs,
            vary=self.vary or others.vary,
            agree=tasks or UNSET,
        )


def contradicting_inputs(inputs: object, place: FilePlace) -> Iterator[Problem]:
    """Yield contradictions in the parsed table ``inputs``; values of a wrong type are ignored."""
    for name, table in inputs.items() if isinstance(inputs, dict) else ():
        if not isinstance(table, dict):
            continue
        here = place.key(name)
        low, high = table.get("low", 0), table.get("high")
        if not table:
            yield here.problem("the table is empty", "give it recipe, high, value or shape, or leave it out")
        if "recipe" in table and "value" in table:
            yield here.problem("both a recipe and a value", "keep one of them")
        elif "recipe" in table and table["recipe"] != RANGED and ("low" in table or "high" in table):
            yield here.problem("both a recipe and a range", f"keep one; only {RANGED} takes low and high")
        elif "value" in table and ("low" in table or "high" in table):
            yield here.problem("both a value and a range", "keep value, or low and high")
        elif "low" in table and "high" not in table:
            yield here.problem("a range without its upper end", "give it high, which no value reaches")
        elif _is_number(low) and _is_number(high) and not low < high:
            what = f"no value is at least {low} and less than {high}"
            yield here.problem(what, "high is above every value: give it more than low")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
