"""The page about the graphs of fuzz suites, made of their tables: ``docs/reference/variants.md``."""

from collections.abc import Callable

from harness.annex.made.grown.grow import PRODUCTIONS
from harness.annex.made.variants.sequence import TRANSFORMATIONS

_HEAD = """# Graphs of fuzz suites

Half of the models of a suite `fuzz:SEED:COUNT` are graphs; see [suites](corpus.md#built-in-suites). Two
follow each other: a random graph (`000044-grown`), and a variant that keeps the answer of another model.
Six in ten are variants of the random graph before (`000045-variant-of-000044`), two of an operator test of
ONNX, two of a small model of the zoo. The metadata of a variant has its steps (`harness.steps`).

```sh
ep-harness check CPUExecutionProvider --suite fuzz:1:1000
```

## Variants

One to eight of these transformations, drawn one after the other, each at a drawn place. *Exact*: the answer
stays to the last bit in every implementation of ONNX; otherwise it stays within rounding noise. If some
result of a model jumps (an index, a rounded number), only exact transformations are applied.

| transformation | exact | why the answer stays |
|---|---|---|
"""

_MIDDLE = """
A variant is judged as any other model is: by the CPU EP's answer for it. If it fails, and the random graph
that it is made of passes on the same target, the [fault](triage.md) says so. The expected outputs of an
operator test are those of its variant, too: they show a wrong golden.

Not transformed: models older than opset 13, and those with operators of `ai.onnx.ml`, for which onnx's type
inference may crash.

## Random graphs

One to a dozen draws of these productions, each typed by ONNX's own inference of one node. Shapes have ranks
0 to 6 and up to 4,096 elements; one graph in 25 has an input without elements; opsets are 13 to 25. Numbers
are multiples of 1/64, and no result is beyond 10,000, so nothing is NaN or infinite. What jumps is applied
only to values that nothing has rounded.

| productions | |
|---|---|
"""


def page() -> str:
    """Return the page."""
    rows = [
        f"| {one.name} | {'yes' if one.exact else ''} | {_first_line(one.apply)} |"
        for one in TRANSFORMATIONS.values()
    ]
    kinds = [
        f"| {kind} | {' '.join(dict.fromkeys(map(_first_line, productions)))} |"
        for kind, productions in PRODUCTIONS.items()
    ]
    return _HEAD + "\n".join(rows) + "\n" + _MIDDLE + "\n".join(kinds) + "\n"


def _first_line(function: Callable[..., object]) -> str:
    return (function.__doc__ or "").strip().partition("\n")[0].replace("|", "\\|")
