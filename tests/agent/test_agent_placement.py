"""Which provider ran which node, where onnxruntime's own record lacks nodes of the CPU."""

from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.placement import placement

EP, CPU = "SomeExecutionProvider", "CPUExecutionProvider"
RECORDED = ((EP, ("Add",)),)
RAN = [
    (EP, [("fused_0", "fused")]),
    (CPU, [("InsertedPrecisionFreeCast_h", "Cast")]),
    (CPU, [("erf", "Erf")]),
]


def job_run(version: tuple[int, int], ran: Any) -> Any:
    """A job that has run with a profile; without one another session is asked for, which fails here."""
    from harness.agent.session_target import SessionTarget

    groups = [
        SimpleNamespace(
            ep_name=name, get_nodes=lambda ops=ops: [SimpleNamespace(name=op, op_type=op) for op in ops]
        )
        for name, ops in RECORDED
    ]
    target = SimpleNamespace(chain=[EP], version=version, records_assignment=lambda: True)
    target.records_every_node = lambda: SessionTarget.records_every_node(target)  # type: ignore[arg-type]

    def fails(_: Any) -> Any:
        raise RuntimeError("no second session")

    return SimpleNamespace(
        target=target,
        session=SimpleNamespace(get_provider_graph_assignment_info=lambda: groups),
        profile=None if ran is None else SimpleNamespace(nodes=ran),
        enter=fails,
    )


@pytest.mark.parametrize(
    ("version", "ran", "source", "cpu_ops"),
    [
        ((1, 27), RAN, "assignment", {}),
        ((1, 26), RAN, "profile", {"Erf": 1}),
        ((1, 25), [], "incomplete", {}),
        ((1, 25), None, "incomplete", {}),
    ],
)
def test_before_1_27_a_profile_shows_the_nodes_of_the_cpu(
    version: tuple[int, int], ran: Any, source: str, cpu_ops: dict[str, int]
) -> None:
    """As recorded for a float16 ``Erf`` beside an ``Add`` by onnxruntime 1.26.0; 1.32.0 has both."""
    placed = placement(job_run(version, ran))
    assert (placed["source"], placed["ep_ops"], placed["cpu_ops"]) == (source, {"Add": 1}, cpu_ops)
