"""Scenarios: what applications do with a session besides making it once and running it."""

SCENARIOS: dict[str, str] = {
    "plain": "one session is made and run",
    "io_binding": "inputs and outputs are bound, in device memory where the EP has an allocator",
    "dynamic_shapes": "one session runs several shapes, then the first one again",
    "zero_size": "a batch of no elements, then the given one, in one session",
    "concurrent": "several threads run one session at the same time",
    "sessions": "many sessions are opened, run and closed, one after the other",
    "ort_format": "the model is converted to ORT format, loaded from there and run",
    "ep_context": "the model is compiled and written, and a fresh process loads and runs the result",
    "from_bytes": "the model is loaded from memory, not from its path",
    "external_data": "the model's weights lie in a file beside it",
    "cpu_fallback_disabled": "a session in which no node may be left to the CPU EP",
}
"""The values of the axis ``scenario``, with one line each."""

PLAIN = "plain"

OTHER_DATA = frozenset({"dynamic_shapes", "zero_size"})
"""Scenarios that feed a model with data of their own, for which the CPU provider is asked anew."""

OTHER_FILES = frozenset({"external_data"})
"""Scenarios that need nothing but other files; what is in them is the same model."""

OTHER_SESSION = SCENARIOS.keys() - OTHER_DATA - OTHER_FILES - {PLAIN}
"""Scenarios that the agent plays. It tells facts about each, so that no plain run passes as one of these."""


RUNS_PLAINLY = frozenset({PLAIN, "cpu_fallback_disabled", "external_data", "from_bytes", "ort_format"})
"""Scenarios whose session runs the data that the model has, as a plain one does."""


def session_of(scenario: str) -> str:
    """The scenario as far as it decides what the CPU provider says: other data alone is another case."""
    return PLAIN if scenario in OTHER_DATA else scenario


Scalar = bool | int | float | str
Fact = Scalar | tuple[Scalar, ...]
Facts = dict[str, Fact]
"""What was seen in a scenario, by name: sizes, counts, times (``_ms``), where a value lay."""
