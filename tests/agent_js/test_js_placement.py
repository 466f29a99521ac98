"""Placement from onnxruntime's log: complete, or none."""

from collections.abc import Callable
from typing import Any

import onnx
import onnx.parser
import pytest

PREFIX = (
    "2026-11-25 03:13:51.632051892 [V:onnxruntime:, session_state.cc:1383 VerifyEachNodeIsAssignedToAnEp]"
)
BEGIN = f"{PREFIX} Node placements"
MIXED = f"""some words of a driver
{BEGIN}
{PREFIX}  Node(s) placed on [CPUExecutionProvider]. Number of nodes: 1
{PREFIX}   NonZero ()
{PREFIX}  Node(s) placed on [WebGpuExecutionProvider]. Number of nodes: 3
{PREFIX}   Abs (first)
{PREFIX}   Abs (VerifyEachNode)
{PREFIX}   MemcpyToHost (Memcpy)
"""
ALL = f"{BEGIN}\n{PREFIX}  All nodes placed on [CPUExecutionProvider]. Number of nodes: 2\n"
PLACED = """
import { couldForge, placedGroups, placementOf } from 'agent:placement.mjs';
const groups = placedGroups(value.log);
give(groups && placementOf(groups, value.own, () => ({ Relu: 2 })));
"""


def placed(evaluate: Callable[..., Any], log: str, *own: str) -> Any:
    return evaluate(PLACED, {"log": log, "own": own})


def test_nodes_are_counted_by_provider_without_copies(evaluate: Callable[..., Any]) -> None:
    assert placed(evaluate, MIXED, "WebGpuExecutionProvider") == {
        "ep_nodes": 2,
        "cpu_nodes": 1,
        "ep_ops": {"Abs": 2},
        "cpu_ops": {"NonZero": 1},
        "partitions": 2,
        "source": "log",
    }


def test_where_all_nodes_are_on_one_provider_the_operators_are_the_models(
    evaluate: Callable[..., Any],
) -> None:
    found = placed(evaluate, ALL, "CPUExecutionProvider")
    assert (found["ep_nodes"], found["ep_ops"], found["cpu_nodes"]) == (2, {"Relu": 2}, 0)
    assert placed(evaluate, ALL, "WebGpuExecutionProvider")["cpu_ops"] == {"Relu": 2}


def test_a_body_has_a_list_of_its_own(evaluate: Callable[..., Any]) -> None:
    both = placed(evaluate, MIXED + ALL, "WebGpuExecutionProvider")
    assert (both["ep_nodes"], both["cpu_nodes"]) == (2, 3)


@pytest.mark.parametrize(
    "log",
    [
        "",
        "All nodes placed on [WebGpuExecutionProvider]. Number of nodes: 3",
        MIXED.replace(f"{PREFIX}   Abs (first)\n", ""),
        MIXED.replace(f"{PREFIX}   NonZero ()\n", ""),
        MIXED.replace(BEGIN, ""),
    ],
)
def test_an_incomplete_list_is_no_evidence(evaluate: Callable[..., Any], log: str) -> None:
    assert placed(evaluate, log, "WebGpuExecutionProvider") is None


def test_text_of_a_model_that_could_pass_for_the_log_is_found(evaluate: Callable[..., Any]) -> None:
    script = """
    import { couldForge } from 'agent:placement.mjs';
    const bytes = (text) => new TextEncoder().encode(text);
    const texts = ['a VerifyEachNodeIsAssignedToAnEp] b', 'VVerifyEachNodeIsAssignedToAnE', ''];
    give(texts.map((each) => couldForge(bytes(each))));
    """
    assert evaluate(script) == [True, False, False]


MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x, bool c) => (float[4] y) <float[4] w = {1, 2, 3, 4}> {
    k = Neg(w) a = Add(x, k) z = If (c) <
        then_branch = g () => (float[4] t) { t = Relu(a) },
        else_branch = h () => (float[4] e) { n = Abs(w) e = Mul(a, n) }
    > y = Identity(z) }"""


def test_operators_that_depend_on_no_input_are_not_counted(evaluate: Callable[..., Any]) -> None:
    content = onnx.parser.parse_model(MODEL).SerializeToString()
    script = """
    import { operators } from 'agent:onnx.mjs';
    give([operators(Buffer.from(value, 'hex')), operators(Buffer.from(value.slice(0, -40), 'hex'))]);
    """
    whole, cut = evaluate(script, content.hex())
    assert whole == {"Add": 1, "If": 1, "Relu": 1, "Mul": 1, "Identity": 1}
    assert cut == {}
