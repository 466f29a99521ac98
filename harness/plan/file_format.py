"""The matrix file as people write it: its keys, their types and what they mean.

The one source of truth for the reader, the published JSON Schema and the reference documentation.
"""

import json
import re
import sys
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.latency import MOST_RUNS
from harness.core.model_settings import ModelSettings
from harness.core.precision import AS_IS, CONVERSIONS
from harness.core.spread import DEFAULT_LIMITS
from harness.core.structure import OPTION
from harness.core.verdict import Verdict
from harness.plan.scenarios import Scenario, Scenarios

SCHEMA = 1
Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]
Scalar = str | int | float | bool
OneOrMore = Text | Texts
Seconds = Annotated[float, Meta(gt=0)]
PRECISIONS = (AS_IS, *CONVERSIONS)
Precision = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(PRECISIONS)}|ep:.+)$",
        description=f"{', '.join(PRECISIONS)} or ep:<mode>",
    ),
]
VariableName = Annotated[str, Meta(pattern=r"^[^=\x00]+$", description="text without '='")]


class AxesTable(msgspec.Struct, kw_only=True):
    """The varied dimensions; the product of all lists is taken."""

    option_type: ClassVar[Any] = Annotated[list[Scalar], Meta(min_length=1)]

    precision: Annotated[
        Annotated[list[Precision], Meta(min_length=1)] | UnsetType,
        Meta(
            description="`fp32`: models as they come; "
            + ", ".join(f"`{name}`" for name in CONVERSIONS)
            + ": models converted; `ep:<mode>`: a precision mode of the catalogue."
        ),
    ] = UNSET
    graph_optimization: Annotated[
        Annotated[list[Literal["disabled", "basic", "extended", "layout", "all"]], Meta(min_length=1)]
        | UnsetType,
        Meta(description="Graph optimization level of the session."),
    ] = UNSET
    execution_mode: Annotated[
        Annotated[list[Literal["sequential", "parallel"]], Meta(min_length=1)] | UnsetType,
        Meta(description="Execution mode of the session."),
    ] = UNSET
    scenario: Annotated[
        Annotated[list[Scenario], Meta(min_length=1)] | UnsetType,
        Meta(description="How the session is made and run."),
    ] = UNSET


class ModelsTable(msgspec.Struct, kw_only=True):
    """Which models run."""

    suites: Annotated[list[Text], Meta(description="Built-in suites, by name.")] = []
    folders: Annotated[
        list[Text],
        Meta(description="Folders of models, relative to the matrix file: every *.onnx below."),
    ] = []
    exclude: Annotated[list[Text], Meta(description="Globs on suite/model that leave the plan.")] = []
    dimensions: Annotated[
        dict[Text, Annotated[int, Meta(ge=0)]],
        Meta(description="Symbolic dimension -> its length, for models whose inputs are generated."),
    ] = {}


class ModelTable(ModelSettings, frozen=True, kw_only=True):
    """What is said about the selected models; later entries win for each dimension and input."""

    model: Annotated[
        OneOrMore, Meta(description="Glob on suite/model; without a slash also on the model alone.")
    ]


class RuntimeTable(msgspec.Struct, kw_only=True):
    """Which Python, with which onnxruntime: packages, python, ssh or command. Empty: the harness's own."""

    packages: Annotated[
        Texts | UnsetType, Meta(description="Requirements of an environment to build for it.")
    ] = UNSET
    python_version: Annotated[
        Text | UnsetType,
        Meta(description='Beside `packages`: which Python, such as "3.11". Without it the harness\'s own.'),
    ] = UNSET
    python: Annotated[
        Text | UnsetType, Meta(description="An interpreter, by path or name; beside `ssh` one over there.")
    ] = UNSET
    ssh: Annotated[Text | UnsetType, Meta(description="A machine reached by ssh: user@host.")] = UNSET
    command: Annotated[Text | UnsetType, Meta(description="Any command that ends in a Python.")] = UNSET


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Limit of each phase in seconds; a phase that exceeds it is a hang and its process is killed."""

    start: Annotated[Seconds, Meta(description="Start of the process, import of onnxruntime.")] = 120.0
    register: Annotated[Seconds, Meta(description="Registration of a plugin library.")] = 60.0
    create: Annotated[Seconds, Meta(description="Making of a session, compilation included.")] = 300.0
    run: Annotated[Seconds, Meta(description="One run of a session.")] = 60.0
    teardown: Annotated[Seconds, Meta(description="End of a session and of the process.")] = 30.0


class RenewAfter(msgspec.Struct, frozen=True, kw_only=True):
    """When a process has served enough and another takes its place."""

    sessions: Annotated[Annotated[int, Meta(ge=1)], Meta(description="After so many sessions.")] = 5000
    growth_mib: Annotated[
        Annotated[float, Meta(gt=0)],
        Meta(description="Once its resident memory has grown by so much since its first sessions, in MiB."),
    ] = 2048.0


class TargetTable(msgspec.Struct, kw_only=True):
    """A place where sessions are made."""

    name: Annotated[Text, Meta(description="Unique name; part of every cell's id.")]
    provider: Annotated[
        OneOrMore, Meta(description="Execution provider, or a chain of them with the preferred one first.")
    ]
    plugin: Annotated[
        Text | UnsetType,
        Meta(description="Plugin EP: a package with get_library_path(), or a library's path."),
    ] = UNSET
    device: Annotated[dict[Text, Scalar], Meta(description="Device filter; every entry must match.")] = {}
    options: Annotated[dict[Text, Scalar], Meta(description="Provider options.")] = {}
    unchecked_options: Annotated[
        bool, Meta(description="Whether options pass unchecked that the catalogue does not know or refuses.")
    ] = False
    env: Annotated[
        dict[VariableName, Scalar], Meta(description="Environment variables set before the process starts.")
    ] = {}
    runtime: Annotated[
        RuntimeTable,
        Meta(
            description="Which Python, with which onnxruntime.",
            extra_json_schema={
                "anyOf": [
                    {"maxProperties": 1},
                    {"required": ["packages", "python_version"], "maxProperties": 2},
                    {"required": ["ssh", "python"], "maxProperties": 2},
                ],
                "dependentRequired": {"python_version": ["packages"]},
            },
        ),
    ] = msgspec.field(default_factory=RuntimeTable)
    workers: Annotated[int, Meta(ge=1, description="Processes at once on this device.")] = 1
    required: Annotated[bool, Meta(description="Whether `unavailable` fails the run.")] = False
    axes: Annotated[
        AxesTable, Meta(description="Axes of this target; they replace those of [axes] with the same name.")
    ] = msgspec.field(default_factory=AxesTable)
    timeouts_s: Annotated[Timeouts, Meta(description="Limit of each phase in seconds.")] = Timeouts()
    memory_limit_mb: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Meta(description="Memory that a process may take, in MiB; no limit without it."),
    ] = UNSET
    retries: Annotated[
        Annotated[int, Meta(ge=0, le=100)],
        Meta(description="Further tries of an unexpected failure; they show flakes and change no verdict."),
    ] = 0
    alone: Annotated[bool, Meta(description="Whether nothing else may run meanwhile.")] = False
    device_lock: Annotated[
        str | UnsetType,
        Meta(
            description="Name of the device that its sessions occupy, for targets that share one; "
            "an empty text for a device that needs no lock. Without it the name follows from "
            "provider, device filter and runtime."
        ),
    ] = UNSET
    renew_after: Annotated[RenewAfter, Meta(description="When a process is replaced by a fresh one.")] = (
        RenewAfter()
    )


class SelectorTable(msgspec.Struct, kw_only=True):
    """Selects cells: every key must match, by one of its globs."""

    option_type: ClassVar[Any] = OneOrMore

    suite: Annotated[OneOrMore | UnsetType, Meta(description="Glob on the suite.")] = UNSET
    model: Annotated[
        OneOrMore | UnsetType,
        Meta(description="Glob on suite/model; without a slash also on the model alone."),
    ] = UNSET
    target: Annotated[OneOrMore | UnsetType, Meta(description="Glob on the target's name.")] = UNSET
    provider: Annotated[
        OneOrMore | UnsetType, Meta(description="Glob on the first provider of the target's chain.")
    ] = UNSET
    precision: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    graph_optimization: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    execution_mode: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET
    scenario: Annotated[OneOrMore | UnsetType, Meta(description="Glob on this axis.")] = UNSET


class ExcludeTable(SelectorTable, kw_only=True):
    """Cells that leave the plan."""


class NoiseTable(msgspec.Struct, kw_only=True):
    """Limits on the error in multiples of the model's own rounding noise."""

    rms: Annotated[
        Annotated[float, Meta(gt=0)],
        Meta(description="RMS of the error over RMS of the noise."),
    ] = DEFAULT_LIMITS.rms
    max: Annotated[
        Annotated[float, Meta(gt=0)], Meta(description="Error of any element over the noise of that element.")
    ] = DEFAULT_LIMITS.max
    precision: Annotated[
        Literal["float32", "float16", "bfloat16"] | UnsetType,
        Meta(description="Whose rounding makes the noise; without it that of the cell's precision."),
    ] = UNSET


class ToleranceTable(SelectorTable, kw_only=True):
    """Tolerance for the selected cells; later entries win."""

    rtol: Annotated[Annotated[float, Meta(ge=0)] | UnsetType, Meta(description="Relative tolerance.")] = UNSET
    atol: Annotated[Annotated[float, Meta(ge=0)] | UnsetType, Meta(description="Absolute tolerance.")] = UNSET
    noise: Annotated[
        NoiseTable | UnsetType,
        Meta(description="Instead of both: limits in multiples of the model's own rounding noise."),
    ] = UNSET
    steps: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType,
        Meta(description="Quantization steps that an output of quantized values may be off; 1 by default."),
    ] = UNSET
    table_only: Annotated[
        bool | UnsetType,
        Meta(description="Whether the tolerance alone judges, whatever the model's rounding noise."),
    ] = UNSET


ToleranceItem = Annotated[
    ToleranceTable,
    Meta(
        extra_json_schema={
            "anyOf": [{"required": [key]} for key in ("rtol", "noise", "steps", "table_only")],
            "dependentRequired": {"rtol": ["atol"], "atol": ["rtol"]},
            "not": {"anyOf": [{"required": [key, "noise"]} for key in ("rtol", "table_only")]},
        }
    ),
]
"""An entry as the published schema checks it; the reader has words of its own for what contradicts itself."""


class ExpectTable(SelectorTable, kw_only=True):
    """The verdict that the selected cells are known to have; later entries win."""

    verdict: Annotated[
        Verdict | Annotated[list[Verdict], Meta(min_length=1)],
        Meta(description="The expected verdict, or several where a fault shows in more than one way."),
    ]
    reason: Annotated[Text, Meta(description="Why, or a link to it.")]


class LatencyTable(SelectorTable, kw_only=True):
    """How the time of the selected cells' runs is measured; later entries win."""

    warm_up: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_RUNS)],
        Meta(description="Runs that do not count, before the others."),
    ] = 10
    repeats: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Runs that count, at most.")
    ] = 100
    budget_s: Annotated[
        Seconds,
        Meta(
            description="Seconds after which no further run begins, warm-up included; one run always counts."
        ),
    ] = 10.0


class RepeatTable(SelectorTable, kw_only=True):
    """How often the selected cells are run, to see whether they give the same; later entries win."""

    runs: Annotated[Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Runs in each session.")] = 10
    sessions: Annotated[
        Annotated[int, Meta(ge=1, le=MOST_RUNS)], Meta(description="Sessions, one after the other.")
    ] = 2
    bit_equal: Annotated[bool, Meta(description="Whether all of them have to give the same bits.")] = False


class MatrixFile(msgspec.Struct, kw_only=True):
    """Test matrix of ort-ep-harness: models x targets x axes."""

    schema: Annotated[Literal[1], Meta(description="Version of the file format.")]
    models: Annotated[ModelsTable, Meta(description="Which models run.")] = msgspec.field(
        default_factory=ModelsTable
    )
    model: Annotated[
        list[ModelTable],
        Meta(description="Dimensions and inputs of single models; later entries win."),
    ] = []
    axes: Annotated[AxesTable, Meta(description="Axes of every target; the product is taken.")] = (
        msgspec.field(default_factory=AxesTable)
    )
    scenarios: Annotated[Scenarios, Meta(description="How much scenarios ask for.")] = Scenarios()
    target: Annotated[list[TargetTable], Meta(min_length=1, description="Where sessions are made.")]
    exclude: Annotated[list[ExcludeTable], Meta(description="Cells that leave the plan.")] = []
    tolerance: Annotated[
        list[ToleranceItem], Meta(description="Tolerances other than the built-in ones; later entries win.")
    ] = []
    expect: Annotated[list[ExpectTable], Meta(description="Known verdicts; later entries win.")] = []
    latency: Annotated[
        list[LatencyTable], Meta(description="Cells whose latency is measured; later entries win.")
    ] = []
    repeat: Annotated[
        list[RepeatTable], Meta(description="Cells that are run repeatedly; later entries win.")
    ] = []


def matrix_schema() -> dict[str, Any]:
    """The matrix file as JSON Schema (2020-12), for editors.

    Returns:
        A new dict; keys that the file does not know are refused everywhere, as the reader does.
    """
    (root, axis_values, globs), tables = msgspec.json.schema_components(
        [MatrixFile, AxesTable.option_type, SelectorTable.option_type], ref_template="#/$defs/{name}"
    )
    for name, table in tables.items():
        if "properties" in table:
            table["additionalProperties"] = False
            # A title that repeats the name of a class tells an editor's user nothing.
            table.pop("title")
        if name in {
            "AxesTable",
            "ExcludeTable",
            "ToleranceTable",
            "ExpectTable",
            "LatencyTable",
            "RepeatTable",
        }:
            values = axis_values if name == "AxesTable" else globs
            table["patternProperties"] = {rf"^{re.escape(OPTION)}.+$": values}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ort-ep-harness matrix",
        **root,
        "$defs": tables,
    }


if __name__ == "__main__":  # writes docs/reference/matrix.schema.json
    sys.stdout.write(json.dumps(matrix_schema(), indent=2) + "\n")
