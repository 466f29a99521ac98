"""Provider options and precision modes, as the catalogue describes them."""

import json
import math
import re
from collections.abc import Collection, Iterable
from typing import Annotated, Literal

import msgspec

from harness.core.text.errors import one_line, valid_names

NonEmptyText = Annotated[str, msgspec.Meta(min_length=1)]
Sources = Annotated[tuple[NonEmptyText, ...], msgspec.Meta(min_length=1)]
OptionType = Literal["bool", "int", "float", "text", "choice", "flags", "path", "bytes", "address", "json"]
Registered = Literal["in_build", "plugin", "both"]

MAY_BE_EMPTY = frozenset({"text", "path", "json", "address"})
"""Types for which an empty text is a valid default."""

_WHOLE = re.compile(r"-?[0-9]{1,20}")  # a number of 64 bits has no more digits
_DECIMAL = re.compile(r"-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_BETWEEN_FLAGS = re.compile(r"[\s|,+]+")


class DynamicOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An option that changes while a session is open: ``set_ep_dynamic_options``.

    Attributes:
        key: Its name.
        values: Allowed values, or some of them; the first is the default, with which a session begins.
        devices: Types of device that have it, such as ``NPU``; empty for all.
        meaning: One line.
        source: Documents; at least one.
    """

    key: NonEmptyText
    values: Annotated[tuple[NonEmptyText, ...], msgspec.Meta(min_length=1)]
    devices: tuple[NonEmptyText, ...] = ()
    meaning: NonEmptyText
    source: Sources


class Option(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One provider option.

    Attributes:
        key: Its name.
        type: ``choice`` takes one of ``values``; ``flags`` a sum of ``flags``, or their names; ``bytes`` a
            number of bytes; ``address`` a pointer, which a matrix cannot set.
        values: Allowed values of a choice; for a number its range as ``["0", "3"]`` with ``ranged``.
        ranged: Whether ``values`` are the lowest and the highest allowed number.
        flags: Flag name -> bit value; also for the values of a choice.
        flags_by_name: Whether the EP reads names, such as ``A|B``, in place of their sum.
        default: Value of an option that is not set. It may be empty for ``MAY_BE_EMPTY``.
        no_default: Why there is no default, such as ``not documented``. Each option has this or ``default``.
        meaning: One line.
        since: First release of onnxruntime, or of the plugin, with it; empty if all have it, or if unknown.
        until: Last release with it; empty if current releases have it.
        deprecated_in: Release that deprecated it.
        changes_numerics: Whether its purpose is to change results. If every output stays bit-identical, it
            had no effect.
        registered: Whether the EP accepts it as part of the build, as a plugin, or both. If other fields
            differ between the two, the key has two entries.
        faster: Values that may be faster, by model or machine: ``ep-harness advise`` tries them.
        from_python: False if only interfaces of other languages accept it.
        source: Documents; at least one.
    """

    key: NonEmptyText
    type: OptionType
    values: tuple[NonEmptyText, ...] = ()
    ranged: bool = False
    flags: dict[NonEmptyText, int] = {}
    flags_by_name: bool = False
    default: str | None = None
    no_default: str = ""
    meaning: NonEmptyText
    since: str = ""
    until: str = ""
    deprecated_in: str = ""
    changes_numerics: bool = False
    registered: Registered = "both"
    faster: tuple[NonEmptyText, ...] = ()
    from_python: bool = True
    source: Sources

    def taken(self, *, plugin: bool) -> bool:
        """Return whether the EP accepts it as a plugin or, otherwise, as part of the build."""
        return self.registered in ("both", "plugin" if plugin else "in_build")

    def problem(self, value: str, booleans: Collection[str] = ("1", "0")) -> str | None:
        """Return what is wrong with a value, to complete ``got <value>, ...``; None if it is valid.

        ``booleans`` has every spelling of a boolean that the EP reads (``Provider.booleans``).
        """
        match self.type:
            case "bool":
                wrong = None if value in booleans else "expected a boolean"
            case "choice":
                wrong = None if value in self.values else f"expected one of {len(self.values)} values"
            case "int" | "bytes" | "float":
                wrong = self._number_problem(value)
            case "flags":
                wrong = self._flags_problem(value)
            case "json":
                wrong = _json_problem(value)
            case "address":
                harmless = value in ("", "0", self.default)
                wrong = None if harmless else "but a matrix cannot set a pointer"
            case "text" | "path":
                wrong = "but it holds a null character" if "\0" in value else None
        return wrong

    def valid(self, value: str, booleans: Collection[str] = ("1", "0")) -> str:
        """Return the valid values in place of ``value``, the nearest first; may be empty."""
        match self.type:
            case "bool":
                return valid_names(value, booleans)
            case "choice":
                return valid_names(value, self.values, limit=len(self.values))
            case "int" | "bytes" | "float":
                kind = "a number" if self.type == "float" else "a whole number"
                kind += " of bytes" if self.type == "bytes" else ""
                return f"valid: {kind}" + (f" from {' to '.join(self.values)}" if self.ranged else "")
            case "flags":
                bits = ", ".join(f"{name} ({bit})" for name, bit in self.flags.items())
                return f"valid: {'names' if self.flags_by_name else 'the sum'} of {bits}"
            case _:
                return ""

    def _number_problem(self, value: str) -> str | None:
        if self.type == "float":
            if not _DECIMAL.fullmatch(value) or math.isinf(float(value)):
                return "expected a number"
            number = float(value)
        else:
            if not _WHOLE.fullmatch(value):
                return "expected a whole number"
            number = int(value)
            if self.type == "bytes" and not 0 <= number < 1 << 64:
                return "expected a number of bytes"
        if self.ranged:
            lowest, highest = (float(bound) for bound in self.values)
            if not lowest <= number <= highest:
                return "which is out of range"
        return None

    def _flags_problem(self, value: str) -> str | None:
        names = [name for name in _BETWEEN_FLAGS.split(value) if name]
        unknown = [name for name in names if name not in self.flags]
        if self.flags_by_name:
            named = one_line(unknown[0], 60) if unknown else ""
            return f"expected names of flags, not {named!r}" if unknown or not names else None
        if names and not unknown:
            return f"expected their sum, {_sum(self.flags[name] for name in names)}, in place of names"
        if not _WHOLE.fullmatch(value) or int(value) < 0:
            return "expected a sum of flags"
        return "which has bits without a meaning" if int(value) & ~_sum(self.flags.values()) else None


class PrecisionMode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named choice of arithmetic; ``ep:<name>`` on the precision axis.

    Attributes:
        name: The word of the EP's own documents, if they have one.
        computes: Element type in which the EP is expected to compute, such as ``float16``; it decides the
            default tolerance and the expected ``delivered_bits``.
        options: Provider options that choose it; so do ``session`` entries and ``env`` variables.
        device: Devices that have the mode, as a filter such as ``{ type = "GPU" }``.
        needs: Further needs, in one line: a calibration table, a quantized model, a release.
        machines: Processors on which it has an effect, ``platform.machine()`` in lower case; empty for all.
        operators: Operator types on which it has an effect; empty for all.
        runnable: False if options cannot choose it from Python; ``needs`` says why.
        meaning: One line.
        source: Documents.
    """

    name: NonEmptyText
    computes: Literal[
        "float32", "tf32", "bfloat16", "float16", "float8", "int8", "int16", "int4", "mixed", "as_model"
    ]
    options: dict[NonEmptyText, str] = {}
    session: dict[NonEmptyText, str] = {}
    env: dict[NonEmptyText, str] = {}
    device: dict[NonEmptyText, str] = {}
    needs: str = ""
    machines: tuple[NonEmptyText, ...] = ()
    operators: tuple[NonEmptyText, ...] = ()
    runnable: bool = True
    meaning: NonEmptyText
    source: Sources


def _json_problem(value: str) -> str | None:
    try:
        json.loads(value)
    except ValueError as error:
        return f"expected JSON: {one_line(error, 120)}"
    except RecursionError:
        return "which is nested too deeply"
    return None


def _sum(bits: Iterable[int]) -> int:
    """Return the union of bits: values may share some."""
    joined = 0
    for bit in bits:
        joined |= bit
    return joined
