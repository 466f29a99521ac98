"""The format of the matrix file: its keys, their types and their meanings.

It is the only source of the reader, the published JSON Schema and the reference documentation. Tables of
entries that select cells have their own modules, such as ``tolerance_entry``.
"""

import re
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from harness.core.files.structure import OPTION
from harness.core.records.model_settings import ModelSettings, SettingSize
from harness.core.records.precision import AS_IS, CONVERSIONS
from harness.core.records.run_work import WORK_LIMIT
from harness.plan.expectation import ExpectTable
from harness.plan.places_entry import PlacesTable, PlaceTable, VariableName
from harness.plan.runs_entry import LatencyTable, RepeatTable, Seconds
from harness.plan.scenarios import ScenarioName, Scenarios
from harness.plan.selector import OneOrMore, SelectorTable, SelectorText, SelectorValue, Texts
from harness.plan.tolerance_entry import ToleranceItem

_MOST_MIB = 1 << 24
"""16 TiB, in MiB."""

_PRECISIONS = (AS_IS, *CONVERSIONS)
_Precision = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(_PRECISIONS)}|ep:.+)$",
        description=f"{', '.join(_PRECISIONS)} or ep:<mode>",
    ),
]


_TargetName = Annotated[
    str,
    Meta(
        pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}$",
        description="a unique name of one line, up to 200 characters, which every cell's id has",
    ),
]


class AxesTable(msgspec.Struct, kw_only=True):
    """The varied dimensions; the product of all lists is taken."""

    option_type: ClassVar[Any] = Annotated[list[SelectorValue], Meta(min_length=1)]

    precision: Annotated[
        Annotated[list[_Precision], Meta(min_length=1)] | UnsetType,
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
        Annotated[list[ScenarioName], Meta(min_length=1)] | UnsetType,
        Meta(description="How the session is made and run."),
    ] = UNSET


class ModelsTable(msgspec.Struct, kw_only=True):
    """Which models run."""

    suites: Annotated[list[SelectorText], Meta(description="Built-in suites, by name.")] = []
    folders: Annotated[
        list[SelectorText],
        Meta(description="Folders of models, relative to the matrix file: every *.onnx below."),
    ] = []
    packages: Annotated[
        list[SelectorText],
        Meta(
            description="Model packages of onnxruntime, relative to the matrix file: each variant of each "
            "component is a model, for the targets of its provider."
        ),
    ] = []
    exclude: Annotated[list[SelectorText], Meta(description="Globs on suite/model that leave the plan.")] = []
    dimensions: Annotated[
        dict[SelectorText, SettingSize],
        Meta(description="Symbolic dimension -> its length, for models whose inputs are generated."),
    ] = {}


class ModelTable(ModelSettings, frozen=True, kw_only=True):
    """Settings of the selected models; later entries win for each dimension, input and output."""

    model: Annotated[
        OneOrMore, Meta(description="Glob on suite/model; without a slash also on the model alone.")
    ]


class RuntimeTable(msgspec.Struct, kw_only=True):
    """Where onnxruntime runs: packages, python, ssh, adb, command, node, browser, agent. Empty: here."""

    packages: Annotated[
        Texts | UnsetType, Meta(description="Requirements of an environment to build for it.")
    ] = UNSET
    python_version: Annotated[
        SelectorText | UnsetType,
        Meta(description='Beside `packages`: which Python, such as "3.11". Without it the harness\'s own.'),
    ] = UNSET
    python: Annotated[
        SelectorText | UnsetType,
        Meta(description="An interpreter, by path or name; beside `ssh` one over there."),
    ] = UNSET
    ssh: Annotated[SelectorText | UnsetType, Meta(description="A machine reached by ssh: user@host.")] = UNSET
    command: Annotated[SelectorText | UnsetType, Meta(description="Any command that ends in a Python.")] = (
        UNSET
    )
    adb: Annotated[
        SelectorText | UnsetType,
        Meta(description="An Android device by its serial number, as `adb devices` lists it; with `agent`."),
    ] = UNSET
    agent: Annotated[
        Texts | UnsetType,
        Meta(
            description='An agent of another author: program and arguments, such as ["./my_agent"]. Words '
            "that begin with `./` are files beside the matrix; `ssh` and `adb` upload them."
        ),
    ] = UNSET
    channel: Annotated[
        Literal["binary", "line", "socket"] | UnsetType,
        Meta(
            description="Beside `ssh`, `adb`, `command` or `agent`, how messages travel: `binary`; `line`, "
            "printable lines, for what changes bytes; `socket`: the agent connects to a port here, with "
            "ssh through ssh. Without it: `binary`; behind a command a probe shows whether it "
            "has to be `line`."
        ),
    ] = UNSET
    node: Annotated[
        SelectorText | UnsetType,
        Meta(
            description='Node.js in place of a Python: which version, such as "20", or its path. '
            "`packages` are then those of npm, such as onnxruntime-node@1.30.0."
        ),
    ] = UNSET
    browser: Annotated[
        SelectorText | UnsetType,
        Meta(
            description='A browser in place of a Python: "chromium", "chrome", "edge", or its path. '
            "`packages` are then those of npm, such as onnxruntime-web@1.30.0."
        ),
    ] = UNSET
    flags: Annotated[
        Texts | UnsetType, Meta(description="Beside `browser`: switches of its command line.")
    ] = UNSET
    threads: Annotated[
        Annotated[int, Meta(ge=1, le=64)] | UnsetType,
        Meta(description="Beside `browser`: threads of onnxruntime-web's wasm; 1 without it."),
    ] = UNSET


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Limit of each phase in seconds; a phase that exceeds it is a `hang` or a `timeout`."""

    queue: Annotated[
        Seconds, Meta(description="Waiting in the queue of a scheduler (Slurm), before the start.")
    ] = 3600.0
    start: Annotated[Seconds, Meta(description="Start of the process, import of onnxruntime.")] = 120.0
    register: Annotated[Seconds, Meta(description="Registration of a plugin library.")] = 60.0
    create: Annotated[Seconds, Meta(description="Making of a session, compilation included.")] = 300.0
    run: Annotated[Seconds, Meta(description="One run of a session.")] = 60.0
    teardown: Annotated[Seconds, Meta(description="End of a session and of the process.")] = 30.0

    def at_most(self, limit_s: float) -> "Timeouts":
        """Return limits by which neither a session nor a run takes longer than ``limit_s`` seconds."""
        return msgspec.structs.replace(self, create=min(self.create, limit_s), run=min(self.run, limit_s))


class RenewAfter(msgspec.Struct, frozen=True, kw_only=True):
    """When a fresh process replaces a used one."""

    sessions: Annotated[int, Meta(ge=1, le=1_000_000_000, description="After so many sessions.")] = 5000
    growth_mib: Annotated[
        float,
        Meta(
            gt=0,
            le=_MOST_MIB,
            description="Once its resident memory has grown by so much since its first sessions, in MiB.",
        ),
    ] = 2048.0


class TargetTable(msgspec.Struct, kw_only=True):
    """A place where sessions are made."""

    name: _TargetName
    provider: Annotated[
        OneOrMore, Meta(description="Execution provider, or a chain of them with the preferred one first.")
    ]
    plugin: Annotated[
        SelectorText | UnsetType,
        Meta(description="Plugin EP: a package with get_library_path(), or a library's path."),
    ] = UNSET
    device: Annotated[
        dict[SelectorText, SelectorValue],
        Meta(description="Device filter; every entry must match, `number` counts those that do."),
    ] = {}
    options: Annotated[dict[SelectorText, SelectorValue], Meta(description="Provider options.")] = {}
    precisions: Annotated[
        dict[SelectorText, dict[SelectorText, SelectorValue]],
        Meta(
            description="Precision modes of a provider that the catalogue does not have: name -> the "
            "provider options that choose it; `ep:<name>` on the axis."
        ),
    ] = {}
    unchecked_options: Annotated[
        bool, Meta(description="Whether options pass unchecked that the catalogue does not know or refuses.")
    ] = False
    env: Annotated[
        dict[VariableName, SelectorValue],
        Meta(description="Environment variables set before the process starts."),
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
                    {"required": ["packages", "node"], "maxProperties": 2},
                    {
                        "required": ["agent"],
                        "propertyNames": {"enum": ["ssh", "adb", "command", "agent", "channel"]},
                    },
                    {
                        "required": ["packages", "browser"],
                        "propertyNames": {"enum": ["packages", "browser", "flags", "threads"]},
                    },
                ],
                "dependentRequired": {
                    "python_version": ["packages"],
                    "node": ["packages"],
                    "browser": ["packages"],
                    "flags": ["browser"],
                    "threads": ["browser"],
                    "adb": ["agent"],
                },
            },
        ),
    ] = msgspec.field(default_factory=RuntimeTable)
    places: Annotated[
        PlacesTable | Annotated[list[PlaceTable], Meta(min_length=1)] | UnsetType,
        Meta(description="Interchangeable machines or devices that share the cells."),
    ] = UNSET
    workers: Annotated[
        Annotated[int, Meta(ge=1, le=1024)] | UnsetType,
        Meta(
            description="Processes at once on this device, or on each of its places; "
            "without it one, or two on the processor if much work is left."
        ),
    ] = UNSET
    required: Annotated[bool, Meta(description="Whether `unavailable` fails the run.")] = False
    axes: Annotated[
        AxesTable, Meta(description="Axes of this target; they replace those of [axes] with the same name.")
    ] = msgspec.field(default_factory=AxesTable)
    timeouts_s: Annotated[Timeouts, Meta(description="Limit of each phase in seconds.")] = Timeouts()
    memory_limit_mb: Annotated[
        Annotated[int, Meta(ge=1, le=_MOST_MIB)] | UnsetType,
        Meta(description="Memory that a process may take, in MiB; no limit without it."),
    ] = UNSET
    retries: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Further tries of an unexpected failure; they show flakes and change no verdict.",
        ),
    ] = 0
    work_limit: Annotated[
        float,
        Meta(
            gt=0,
            le=1e30,
            description="Operations of one run up to which a model is run again and with other inputs: "
            "multiply-adds, bytes moved, and 10,000 for each node. The record lists omitted checks.",
        ),
    ] = WORK_LIMIT
    alone: Annotated[bool, Meta(description="Whether the target runs alone.")] = False
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


class ExcludeTable(SelectorTable, kw_only=True):
    """Cells that leave the plan."""


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
    scenarios: Annotated[Scenarios, Meta(description="Settings of scenarios.")] = Scenarios()
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
    """Return the matrix file as JSON Schema (2020-12), for editors; unknown keys are refused everywhere."""
    (root, axis_values, globs), tables = msgspec.json.schema_components(
        [MatrixFile, AxesTable.option_type, SelectorTable.option_type], ref_template="#/$defs/{name}"
    )
    for name, table in tables.items():
        if "properties" in table:
            table["additionalProperties"] = False
            table.pop("title")  # a class name is no help in an editor
            values = {"AxesTable": axis_values}.get(name, globs if "suite" in table["properties"] else None)
            if values:
                table["patternProperties"] = {rf"^{re.escape(OPTION)}.+$": values}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "ort-ep-harness matrix",
        **root,
        "$defs": tables,
    }
