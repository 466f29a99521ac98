"""Faults at one node in the middle of zoo models: does a trace name that node, and no other?

    python benchmarks/trace_faults.py [FAULTS] [MODEL ...]

The crooked EP of the tests acts at one node. Only plants that change the outputs of the model count: a
node that onnxruntime fuses away does not run. One model has one lab, which computes golden
and noise once.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from processes import verdict

from harness.annex.trace.trace_study import TRACE_NEEDS, TraceStudy
from harness.annex.trace.what_to_trace import model_to_trace
from harness.annex.triage.lab import Lab, Trial
from harness.annex.triage.net import load
from harness.annex.triage.subject import Subject
from harness.core.comparison.output_metrics import OutputMetrics
from harness.plan.target import Target
from tests.crooked_ep.build import build

MODELS = (
    "vit-small-op17",
    "bert-small-op17",
    "gpt-small-op17",
    "resnet-small-op17",
    "llama-small-op17",
    "unet-small-op17",
    "diffusion-small-op17",
    "efficientnet-small-op17",
    "text-small-op17",
    "speech-gru-small-op17",
    "mnist-small-op12",
)
FAULTS = {
    "value": {
        "Add": "add_factor",
        "MatMul": "matmul_tail_lost",
        "Conv": "conv_flipped",
        "Gemm": "gemm_beta_ignored",
        "Sub": "sub_swapped",
        "Div": "div_swapped",
        "Relu": "relu_leaks",
        "Concat": "concat_reversed",
    },
    "precision": {"Conv": "in_bf16", "MatMul": "matmul_bf16", "Mul": "in_bf16", "Add": "in_bf16"},
    "saturation": {"Tanh": "tanh_clipped", "Sigmoid": "sigmoid_fast", "Mul": "one_nan", "Relu": "one_nan"},
    "last": {"Mul": "mul_tail_lost", "MatMul": "random_digits", "Conv": "random_digits", "Add": "one_nan"},
}
"""Kind -> operator -> fault of the crooked EP."""


def plants(subject: Subject) -> Iterator[tuple[str, str, str, str]]:
    """Yield kind, node, operator and fault: for each kind the nodes nearest to the middle first."""
    nodes = load(subject).nodes
    middle = sorted(range(len(nodes)), key=lambda number: abs(number - len(nodes) // 2))
    for kind, faults in FAULTS.items():
        for number in middle:
            node = nodes[number]
            if node.op_type in faults:
                yield kind, node.name, node.op_type, faults[node.op_type]


def target(library: Path, number: int, fault: str, node: str) -> Target:
    options = {"fault": fault, "only": node} if fault else {}
    return Target(
        name=f"crooked-{number}",
        provider=("CrookedExecutionProvider",),
        plugin=str(library),
        options=options,
        unchecked_options=True,
    )


def figures(rows: tuple[OutputMetrics, ...]) -> list[tuple[float | None, float | None, int]]:
    return [(row.max_abs, row.rmse, row.details.special if row.details else 0) for row in rows]


def main(most: int, models: tuple[str, ...]) -> int:
    library = build(Path(tempfile.gettempdir()) / "crooked_trace")
    named = wrong = tried = 0
    for model in models:
        subject, _ = model_to_trace(f"zoo/{model}", None, lambda _: None)
        candidates = list(plants(subject))
        targets = [target(library, 0, "", "")]
        targets += [
            target(library, one, fault, node) for one, (_, node, _, fault) in enumerate(candidates, 1)
        ]
        found: dict[str, bool] = {}
        with tempfile.TemporaryDirectory() as folder, Lab(targets, Path(folder), print, TRACE_NEEDS) as lab:
            (healthy,) = lab.run([Trial(subject=subject, target="crooked-0")])
            for number, (kind, node, op_type, fault) in enumerate(candidates, 1):
                if kind in found or tried >= most:
                    continue
                (own,) = lab.run([Trial(subject=subject, target=f"crooked-{number}")])
                if figures(own.record.outputs) == figures(healthy.record.outputs):
                    continue  # nothing of it reaches an output
                began = time.monotonic()
                result, *_ = TraceStudy(lab, subject, f"crooked-{number}", (), lambda _: None).run()
                tried += 1
                found[kind] = result.guilty == (node,)
                named += found[kind]
                wrong += len(set(result.guilty) - {node})
                print(
                    f"{'named ' if found[kind] else 'MISSED'} {model} {fault} at {op_type} {node}: "
                    f"{time.monotonic() - began:.0f} s; {result.finding}: {result.sentence}",
                    flush=True,
                )
    print(f"| faults at one node | named {named} of {tried} | other nodes called guilty: {wrong} |")
    share = named / max(1, tried)
    met = verdict(f"share of {tried} nodes with a fault that trace names", share, 0.95, at_least=True)
    met &= verdict("healthy nodes that trace calls guilty", wrong, 0)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 40, tuple(sys.argv[2:]) or MODELS))
