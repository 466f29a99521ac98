"""Scenarios: ways to use a session other than creating it once and running it.

This table is the only one. A new scenario takes one entry here, and a module of its name with a function
``play`` in ``harness.agent.scenarios``.
"""

import msgspec

PLAIN = "plain"

DYNAMIC_OPTIONS, CAPTURE = "dynamic_options", "capture"
"""Scenarios whose settings are those of the provider in the catalogue."""

PACKAGE_SCENARIO = "package"
"""The scenario in which a runtime selects a variant of a component; in others, a variant itself runs."""

SHAPED = "dynamic_shapes"
"""The scenario that runs a grid of sizes, where the matrix has one."""

GENERATE = "generate"
"""The scenario whose records have ``generation``, and the suite of models for it."""

NOT_IN_RUNTIME, NOT_IN_AGENT = "not_in_runtime", "not_in_agent"
"""Causes of ``unsupported`` that say nothing about a provider: who lacks the API, in place of it."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A value of the axis ``scenario``.

    Attributes:
        meaning: The scenario in one line.
        surface: The part of onnxruntime's API that it shows, in words of onnxruntime.
        other_data: Whether it has its own data, which need their own golden.
        own_case: Whether it applies to some models only, or needs other files or sizes; the golden stays.
        tries_shapes: Whether the CPU provider may refuse some of the shapes, which are then left out.
        swaps_inputs: Whether the session runs the given data as a plain session does, so that other inputs
            can run between two such runs.
        measurable: Whether it has single runs of one session, one after the other, whose latency counts.
        repeatable: Whether its runs can be repeated; some scenarios repeat in their own way.
        module: The module of ``harness.agent.scenarios`` that plays it, if its name differs from the
            scenario's; empty if the agent runs it plainly.
    """

    meaning: str
    surface: str = ""
    other_data: bool = False
    own_case: bool = False
    tries_shapes: bool = False
    swaps_inputs: bool = False
    measurable: bool = True
    repeatable: bool = True
    module: str | None = None

    @property
    def other_session(self) -> bool:
        """Whether the session itself is used in another way; the agent then reports facts about that use."""
        return self.module != "" and not self.other_data


SCENARIOS: dict[str, Scenario] = {
    PLAIN: Scenario(
        surface="InferenceSession, run",
        meaning="one session is made and run",
        swaps_inputs=True,
        module="",
    ),
    "io_binding": Scenario(
        surface="run_with_iobinding",
        meaning="inputs and outputs are bound, in device memory where the EP has an allocator",
        repeatable=False,
    ),
    SHAPED: Scenario(
        surface="run with other shapes",
        meaning="one session runs several shapes, then the first one again",
        other_data=True,
        tries_shapes=True,
        repeatable=False,
    ),
    "zero_size": Scenario(
        surface="run with an empty batch",
        meaning="a batch of no elements, then the given one, in one session",
        other_data=True,
        repeatable=False,
        module="dynamic_shapes",
    ),
    "concurrent": Scenario(
        surface="run from several threads",
        meaning="several threads run one session at the same time",
        measurable=False,
        repeatable=False,
    ),
    "sessions": Scenario(
        surface="InferenceSession, often",
        meaning="many sessions are opened, run and closed, one after the other",
        measurable=False,
        repeatable=False,
    ),
    "interleaved": Scenario(
        surface="several sessions at once",
        meaning="sessions of the model and of others like it are open at once, and run in turns",
        measurable=False,
        repeatable=False,
    ),
    "async_runs": Scenario(
        surface="run_async",
        meaning="several runs of one session are in flight at once",
        measurable=False,
        repeatable=False,
    ),
    "lifecycle": Scenario(
        surface="register and unregister a library",
        meaning="the plugin library is registered, used and unregistered, again and again",
        measurable=False,
        repeatable=False,
    ),
    "separate_outputs": Scenario(
        surface="run with output names",
        meaning="each output is requested alone",
        own_case=True,
        measurable=False,
        repeatable=False,
    ),
    "terminate": Scenario(
        surface="RunOptions.terminate",
        meaning="a run is told to end in the middle, and then the session runs again",
        own_case=True,
        measurable=False,
        repeatable=False,
    ),
    CAPTURE: Scenario(
        surface="graph capture and replay",
        meaning="the work of a run is captured, and replayed with other values in the same buffers",
        measurable=False,
        repeatable=False,
        module="graph_capture",
    ),
    "profiling": Scenario(
        surface="enable_profiling",
        meaning="two sessions side by side write a profile each",
        measurable=False,
        repeatable=False,
    ),
    DYNAMIC_OPTIONS: Scenario(
        surface="set_ep_dynamic_options",
        meaning="options of the provider change while the session is open",
        measurable=False,
        repeatable=False,
    ),
    "batch_slots": Scenario(
        surface="run with a batch",
        meaning="a batch of different slots, each slot by itself, and the slots in reverse order",
        other_data=True,
        tries_shapes=True,
        repeatable=False,
        module="dynamic_shapes",
    ),
    "buffers": Scenario(
        surface="buffers of the caller",
        meaning="outputs go into buffers of the caller, which hold a pattern or another model's outputs",
        measurable=False,
        repeatable=False,
    ),
    "initializers": Scenario(
        surface="add_initializer, add_external_initializers",
        meaning="weights come from memory, the file is absent or other, sessions share them",
        own_case=True,
        measurable=False,
        repeatable=False,
    ),
    "adapters": Scenario(
        surface="LoraAdapter",
        meaning="LoRA adapters: none, one, another, none again, two at once",
        other_data=True,
        measurable=False,
        repeatable=False,
    ),
    "free_dimensions": Scenario(
        surface="add_free_dimension_override_by_name",
        meaning="symbolic dimensions get their sizes before the session is made",
        own_case=True,
        swaps_inputs=True,
        module="",
    ),
    "ort_format": Scenario(
        surface="session.save_model_format",
        meaning="the model is converted to ORT format, loaded from there and run",
        swaps_inputs=True,
    ),
    "ep_context": Scenario(
        surface="ep.context_enable",
        meaning="the model is compiled and written, and a fresh process loads and runs the result",
    ),
    "from_bytes": Scenario(
        surface="InferenceSession of bytes",
        meaning="the model is loaded from memory, not from its path",
        swaps_inputs=True,
    ),
    "compile": Scenario(
        surface="ModelCompiler",
        meaning="ModelCompiler from and to everything; fresh processes load and run the results elsewhere",
        measurable=False,
        repeatable=False,
    ),
    "external_data": Scenario(
        surface="external initializers",
        meaning="the model's weights lie in a file beside it",
        own_case=True,
        swaps_inputs=True,
        module="",
    ),
    "cpu_fallback_disabled": Scenario(
        surface="session.disable_cpu_ep_fallback",
        meaning="a session in which no node may be left to the CPU EP",
        swaps_inputs=True,
    ),
    PACKAGE_SCENARIO: Scenario(
        surface="ModelPackageContext.select_component",
        meaning="the runtime selects a variant of a model package, and runs it",
        own_case=True,
        measurable=False,
        repeatable=False,
    ),
    GENERATE: Scenario(
        surface="run with a cache of keys and values",
        meaning="a language model goes through a text in several ways, with its cache",
        other_data=True,
        repeatable=False,
    ),
}
"""The values of the axis ``scenario``, in the order of the documentation."""


def session_of(scenario: str) -> str:
    """Return the scenario if it affects the CPU provider's session; other data alone do not affect it."""
    return PLAIN if SCENARIOS[scenario].other_data else scenario


def agent_module(scenario: str) -> str:
    """Return the name of the module that plays a scenario in the agent; empty if it runs plainly."""
    module = SCENARIOS[scenario].module
    return scenario if module is None else module


def played_by(module: str) -> str:
    """Return the first scenario that a module of the agent plays; the plain one for the empty name."""
    return next(name for name in SCENARIOS if agent_module(name) == module)


ParameterValue = bool | int | float | str
Observation = ParameterValue | tuple[ParameterValue, ...]
Observations = dict[str, Observation]
"""Observations in a scenario, by name: sizes, counts, times (``_ms``), places of values."""
