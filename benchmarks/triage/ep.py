"""The stand-in for an EP: the CPU provider with a planted fault, as a target of a lab."""

import json
from pathlib import Path

import msgspec

from harness.annex.triage.run_triage import trial_target
from harness.golden.provenance import SESSION
from harness.plan.target import Target

ROOT = Path(__file__).resolve().parents[2]
PLANTED = Path(__file__).parent / "planted_onnxruntime"
NAME = "planted"


class Planted(msgspec.Struct, frozen=True, kw_only=True):
    """A fault of the stand-in.

    Attributes:
        fault: A kind of fault.
        node: Name of the guilty node.
        seed: For what the fault leaves open.
        rate: Share of the sessions that are wrong.
    """

    fault: str
    node: str
    seed: int
    rate: float = 1.0


class StandIn:
    """An EP whose fault changes without a new process.

    Args:
        folder: Where its file lies.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "planted.json"
        self.plant()

    def plant(self, *faults: Planted) -> None:
        """Sessions have these faults from now on, each model the first that befalls it."""
        # Sessions are made as those of goldens are: all that is wrong is planted.
        told = {"faults": msgspec.to_builtins(faults), "session": SESSION}
        self.file.write_text(json.dumps(told), encoding="utf-8")

    @property
    def env(self) -> dict[str, str]:
        """What makes a process of the CPU provider the stand-in."""
        return {"PYTHONPATH": f"{PLANTED}:{ROOT}", "PLANTED_FAULT_FILE": str(self.file)}

    def target(self) -> Target:
        """As a target of a lab."""
        return trial_target(Target(name=NAME, provider=("CPUExecutionProvider",), env=self.env))
