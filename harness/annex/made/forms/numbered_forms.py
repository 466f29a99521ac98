"""Operator forms by number: the choice of an operator, and its model.

Choosing needs neither onnx nor onnxruntime, so that a plan can list forms by name.
"""

import functools
import math
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.forms.families import FORM_FAMILIES
from harness.annex.made.forms.operator_schemas import OperatorSchema, operators
from harness.annex.made.forms.setting import Setting

if TYPE_CHECKING:
    from harness.annex.made.forms.form_model import Built


class KernelChoice(msgspec.Struct, frozen=True, kw_only=True):
    """An operator, a version of its domain, and one kernel's element types by type variable."""

    operator: OperatorSchema
    opset: int
    types: dict[str, str]

    @property
    def name(self) -> str:
        """Operator, opset and the types of its kernel, such as ``Conv-22-float32``."""
        names = dict.fromkeys(self.types[key] for key in sorted(self.types))
        return "-".join([full_name(self.operator), str(self.opset), *names])


def full_name(operator: OperatorSchema) -> str:
    """Return the name of an operator, with its domain unless that is ONNX's own."""
    return f"{operator.domain}.{operator.name}" if operator.domain else operator.name


@functools.cache
def known_operators() -> dict[str, tuple[OperatorSchema, ...]]:
    """Return the operators for which a family makes forms, by name, each with its versions."""
    found: dict[str, tuple[OperatorSchema, ...]] = {}
    for operator in operators():
        name = full_name(operator)
        if name in FORM_FAMILIES:
            found[name] = (*found.get(name, ()), operator)
    return found


def count_choices(names: Collection[str]) -> int:
    """Return the number of choices for some operators."""
    return sum(
        len({operator.first, operator.last}) * math.prod(map(len, filter(None, kernel.values())))
        for name in names
        for operator in known_operators()[name]
        for kernel in operator.kernels
    )


def choose(draw: ChoiceStream) -> KernelChoice:
    """Choose an operator, a version and types; all operators are equally likely."""
    known = known_operators()
    operator = draw.pick(known[draw.pick(tuple(known))])
    kernel = draw.pick(operator.kernels)
    types = {name: draw.pick(kernel[name]) for name in sorted(kernel) if kernel[name]}
    opset = draw.pick(sorted({operator.first, operator.last}))
    return KernelChoice(operator=operator, opset=opset, types=types)


def form_model(choice: KernelChoice, draw: ChoiceStream) -> "Built":
    """Return the model of a choice; imports onnx."""
    from harness.annex.made.forms.form_model import build

    setting = Setting(choice.operator, choice.types, draw)
    form = FORM_FAMILIES[full_name(choice.operator)](setting)
    types = tuple(form.types.get(at) or setting.output_type(at) for at in range(form.outputs))
    return build(choice.operator, choice.opset, form, types, draw)
