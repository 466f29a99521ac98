"""The published format of ``faults.jsonl``: its JSON Schema, and a row for each key."""

import importlib
import json
import re
from pathlib import Path

import pytest

from harness.core.records.fault import (
    Condition,
    Fault,
    Frame,
    GraphNode,
    Location,
    NativeCrash,
    ReducedModel,
    Repetition,
    Signature,
    decode_fault,
    encode_fault,
    fault_schema,
)
from harness.core.records.verdict import Phase, Verdict

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
WHOLE = Fault(
    id="F0123456789",
    sentence="It is wrong.",
    signature=Signature(verdict=Verdict.CRASH, phase=Phase.RUN, cause="SIGSEGV"),
    target="npu",
    provider="QNNExecutionProvider",
    representative="s/m[npu]",
    cells=("s/m[npu]",),
    confirmation=Repetition(outcome="sometimes", trials=20, failures=8, repeats=14),
    location=Location(nodes=("n",), op_types=("Relu",), exact=True, alone=True),
    reduced=ReducedModel(
        nodes=(GraphNode(name="n", op_type="Relu", guilty=True),),
        tensors=(),
        bytes=1,
        nodes_before=2,
        bytes_before=3,
    ),
    conditions=(Condition(kind="dtype", value="float16", fails=False, verdict="pass"),),
    crash=NativeCrash(signal="SIGSEGV", frames=(Frame(library="libx.so"),), culprit="libx.so"),
)


def test_a_line_is_valid_and_can_be_read_again() -> None:
    line = encode_fault(WHOLE)
    importlib.import_module("jsonschema").validate(json.loads(line), fault_schema())
    assert decode_fault(line) == WHOLE


def test_the_schema_refuses_what_is_no_fault() -> None:
    jsonschema = importlib.import_module("jsonschema")
    for change in ({"cells": "s/m[npu]"}, {"confirmation": {"outcome": "often"}}, {"id": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(encode_fault(WHOLE)) | change, fault_schema())


def test_each_key_has_a_row() -> None:
    page = (REFERENCE / "triage.md").read_text("utf-8").partition("\n## faults.jsonl\n")[2]
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    keys = {*Fault.__struct_fields__, *Location.__struct_fields__}
    assert named == keys
