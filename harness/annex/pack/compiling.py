"""Compiled variants: models with ``EPContext`` nodes, and the provider's string about what they fit."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.annex.pack.choosing import LeftOut, ProvedVariant
from harness.annex.pack.proof import Proof
from harness.core.text.errors import one_line
from harness.engine.tasks.configuration import configuration
from harness.plan.target import Runtime

COMPILED_FILE = "context.onnx"

_LIMIT_S = 600.0


class CompiledVariants(msgspec.Struct, frozen=True, kw_only=True):
    """What could be compiled.

    Attributes:
        compiled: Variant -> the folder with its compiled model, and the provider's compatibility string.
        left: Variants that stay as they are although a compiled model was asked for, and why.
    """

    compiled: Mapping[str, tuple[Path, str]] = {}
    left: Sequence[LeftOut] = ()


def compiled_variants(proof: Proof, variants: Sequence[ProvedVariant], folder: Path) -> CompiledVariants:
    """Compile the variants that passed the scenario ``ep_context``, each into a folder of its own."""
    compiled: dict[str, tuple[Path, str]] = {}
    left: list[LeftOut] = []
    for one in variants:
        if not one.compiled:
            continue
        target = proof.targets[one.cell.target]
        if target.runtime != Runtime():
            why = "not compiled: its runtime is another one than the harness's"
            left.append(LeftOut(target=target.name, why=why))
            continue
        place = folder / one.name
        place.mkdir(parents=True)
        asked = {
            "config": configuration(target, one.cell).message([]),
            "model": str(proof.cases[one.cell.id].model_path),
            "out": str(place / COMPILED_FILE),
        }
        found = _compile(asked)
        if "compatibility" in found:
            compiled[one.name] = (place, found["compatibility"])
        else:
            left.append(LeftOut(target=target.name, why=f"not compiled: {found['error']}"))
    return CompiledVariants(compiled=compiled, left=tuple(left))


def _compile(asked: Mapping[str, object]) -> dict[str, str]:
    """Compile in another process, as a provider may crash; return its answer, or the error."""
    command = [sys.executable, "-m", "harness.annex.pack.compile_model"]
    try:
        ended = subprocess.run(  # noqa: S603 - an argument list, never a shell
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
        found: dict[str, str] = json.loads(ended.stdout.rpartition("\n@")[2])
    except subprocess.TimeoutExpired:
        return {"error": f"no end within {_LIMIT_S:.0f} s"}
    except ValueError:
        return {"error": one_line(f"the process ended with {ended.returncode}: {ended.stderr[-300:]}")}
    return found
