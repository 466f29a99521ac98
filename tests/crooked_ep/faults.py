"""The table of the crooked EP's faults, as its sources have it."""

import re
from pathlib import Path
from typing import Literal, NamedTuple

TABLE = Path(__file__).with_name("native") / "faults.def"
_ENTRY = re.compile(
    r'^FAULT\((\w+), +(\w+), +(\w+), +(\w+), +"([^"]*)", +"([^"]*)", +"([^"]*)"\)$', re.MULTILINE
)

PROCESS_LIVES = {"KERNEL", "OUTPUT", "CAPABILITY"}
"""Where faults of many models can be shown by one process."""
SHOWN_BY = {
    "INTERLEAVED": "interleaved",
    "BATCH_SLOTS": "batch_slots",
    "BUFFERS": "buffers",
    "INITIALIZERS": "initializers",
    "ADAPTERS": "adapters",
    "MODEL_COMPILER": "compile",
    "NPU_BUFFERS": "buffers",
}
"""Place of a fault that one scenario alone shows -> the scenario."""
BEFORE_SESSIONS = {"LOAD", "REGISTER", "DEVICES"}
SCENARIOS = {
    "TERMINATE": "terminate",
    "DYNAMIC_OPTIONS": "dynamic_options",
    "PROFILING": "profiling",
    "CAPTURE": "capture",
}
"""Place -> the scenario that shows the fault."""
LIFE = {"REGISTRATION", "UNREGISTER", "COMPANY"}
"""Where faults act from a second registration on, or beside a copy: the scenario ``lifecycle`` shows them."""
COMPILED = {"CONTEXT", "LOAD_CONTEXT"}
"""Where faults of compiled models act: the scenario ``ep_context`` shows them."""


class Planted(NamedTuple):
    """One fault: see the comment at the head of the table."""

    name: str
    place: str
    action: str
    model: str
    told: str
    today: str
    sentence: str

    @property
    def chosen_by(self) -> Literal["graph", "option", "environment"]:
        """How a test switches it on: by the name of a model's graph where one process can show many."""
        if self.place in BEFORE_SESSIONS | LIFE:
            return "environment"
        if self.place in SCENARIOS:
            return "option"
        by_graph = self.place in PROCESS_LIVES or self.told in {"error", "out_of_memory"}
        return "graph" if by_graph and self.place not in COMPILED else "option"


def faults() -> tuple[Planted, ...]:
    """Return the faults that a run of all shows, in the order of the table."""
    return tuple(fault for fault in every_fault() if fault.told and fault.place not in SHOWN_BY)


def scenario_faults() -> tuple[Planted, ...]:
    """Return the faults that one scenario alone shows."""
    return tuple(fault for fault in every_fault() if fault.place in SHOWN_BY)


def every_fault() -> tuple[Planted, ...]:
    """Return all faults, those of other tests included."""
    return tuple(Planted(*found) for found in _ENTRY.findall(TABLE.read_text(encoding="utf-8")))
