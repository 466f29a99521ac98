"""How a difference is told to a person, in one line.

Names and strings come from models and execution providers: they are shown as ``repr`` shows them, cut short.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from harness.core.lost import relative_error
from harness.core.metrics import Measured, special_codes, widen
from harness.core.output_metrics import Noise, OutputMetrics, PrecisionError
from harness.core.tolerance import EXACT, Tolerance
from harness.core.value import Map, Sequence, Tensor, Value

NAME_LIMIT = 60
NAMES_LIMIT = 3


def output(name: str) -> str:
    """``output 'y'``."""
    return f"output {_cut(name)}"


def kind(value: Value) -> str:
    """What a value is, without its elements: ``float32[2, 3]``, ``a sequence of 3``."""
    if isinstance(value, Tensor):
        return f"{value.dtype}{list(value.array.shape)}"
    if isinstance(value, Sequence):
        return f"a sequence of {len(value.items)}"
    if isinstance(value, Map):
        return f"a map of {value.keys.array.size}"
    return "an empty optional"


def share(count: int, elements: int) -> str:
    """``3 of 60 elements (5.0%)``."""
    return f"{count} of {elements} elements ({count / max(1, elements):.1%})"


def keys_differ(golden: Iterable[object], actual: Iterable[object]) -> str:
    """Name the keys that stand on one side only; empty where the two hold the same keys equally often."""
    wanted, got = list(golden), list(actual)
    if wanted == got:
        return ""
    lost, added = sorted(set(wanted) - set(got), key=str), sorted(set(got) - set(wanted), key=str)
    clauses = [f"{what} {_some(keys)}" for what, keys in (("missing", lost), ("unexpected", added)) if keys]
    return "map keys differ: " + ("; ".join(clauses) or "some occur another number of times")


def other_names(missing: Seq[str], unexpected: Seq[str]) -> str:
    """Name the outputs that stand on one side only."""
    clauses = [
        f"{what}: {_some(names)}"
        for what, names in (("outputs missing", missing), ("outputs not asked for", unexpected))
        if names
    ]
    return "; ".join(clauses)


def special_values(name: str, golden: Tensor, actual: Tensor, measured: Measured) -> str:
    """Where NaN or infinity differ, and how many of each there are on either side."""
    at = measured.special_at or 0
    counts = []
    for value in (golden, actual):
        codes = special_codes(widen(value.array, value.dtype))
        nans = (codes % 4 == 1) | (codes // 4 == 1)
        counts.append((int(nans.sum()), int(((codes > 0) & ~nans).sum())))
    (golden_nans, golden_infs), (nans, infs) = counts
    finite_wrong = measured.mismatched - measured.special
    return (
        f"{output(name)}: {share(measured.special, golden.array.size)} differ in NaN or infinity, "
        f"first{_at(golden, at)}: got {_element(actual, at)}, golden is {_element(golden, at)}; "
        f"NaN: got {nans}, golden {golden_nans}; infinities: got {infs}, golden {golden_infs}"
        + (f"; {finite_wrong} finite elements differ too" if finite_wrong else "")
    )


def values(
    name: str, golden: Tensor, actual: Tensor, measured: Measured, tolerance: Tolerance, note: str = ""
) -> str:
    """How many values are outside the tolerance, the greatest differences, where, and what was allowed."""
    clauses = [f"{output(name)}: {share(measured.mismatched, golden.array.size)} differ"]
    if tolerance == EXACT:
        return "; ".join(filter(None, [*clauses, *_inequality(golden, actual, measured), note]))
    if measured.max_abs is not None and measured.max_abs_at is not None:
        clauses.append(
            f"greatest absolute difference {measured.max_abs:.3g}{_at(golden, measured.max_abs_at)} "
            f"(allowed {measured.max_abs_allowed or 0.0:.3g})"
        )
    if measured.max_rel is not None and measured.max_rel_at is not None:
        clauses.append(
            f"greatest relative difference {measured.max_rel:.3g}{_at(golden, measured.max_rel_at)} "
            f"(tolerance rtol {tolerance.rtol:g}, atol {tolerance.atol:g})"
        )
    else:
        clauses.append(f"tolerance rtol {tolerance.rtol:g}, atol {tolerance.atol:g}")
    return "; ".join(filter(None, [*clauses, note]))


def _inequality(golden: Tensor, actual: Tensor, measured: Measured) -> Iterator[str]:
    """The greatest difference of values that have to be equal, with both sides, and what explains it."""
    at = measured.max_abs_at
    if measured.max_abs is not None and at is not None:
        sides = f"got {_element(actual, at)}, golden is {_element(golden, at)}"
        furthest = f"the greatest difference is {measured.max_abs:.3g}{_at(golden, at)}"
        yield f"they have to be equal, {furthest}: {sides}"


def got_and_golden(golden: Tensor, actual: Tensor, at: int) -> str:
    """`` at (1, 2): got 3, golden is 2``."""
    return f"{_at(golden, at)}: got {_element(actual, at)}, golden is {_element(golden, at)}"


def beyond_noise(row: OutputMetrics, of_rms: float, of_max: float) -> str:
    """By how much an error exceeds the rounding noise of its model, and the worst element.

    Args:
        row: With its noise.
        of_rms: The limit of the root mean square.
        of_max: The limit of the largest multiple.
    """
    found = row.noise
    if found is None:
        raise ValueError(f"{output(row.name)} has no noise")
    whole = f"{output(row.name)}: the error is {found.rms:.3g} x the model's rounding noise"
    worst = f"at most {found.max:.3g} x{found.worst}"
    return f"{whole} at {found.precision}, {worst} (limits {of_rms:.3g} and {of_max:.3g})"


def times_noise(noise: Noise) -> str:
    """How large an error is in multiples of the model's rounding noise."""
    return f"{noise.rms:.3g} x the model's rounding noise at {noise.precision}, at most {noise.max:.3g} x"


def relative(error: PrecisionError) -> str:
    """The relative error of a converted model's output, and the CPU EP's own."""
    if error.error is None:
        return error.unknown
    own = "" if error.cpu_error is None else f", the CPU EP's own {error.cpu_error:.2g}"
    return f"relative error {error.error:.2g}{own}"


def lost(row: OutputMetrics) -> str:
    """That an output is no answer, although each element is within the tolerance."""
    error = relative_error(row.delivered_bits or 0.0)
    return f"{output(row.name)}: relative error {error:.2g}; the tolerance is wider than the values"


def only_noise(row: OutputMetrics) -> str:
    """That nothing can be told of an output, for rounding alone does as much to it."""
    error = relative_error(row.delivered_bits or 0.0)
    multiple = row.noise.rms if row.noise else 0.0
    return (
        f"{output(row.name)} judges nobody: relative error {error:.2g}, "
        f"which is {multiple:.3g} x the model's own rounding noise"
    )


def remark(row: OutputMetrics) -> str:
    """What is to be known of an output that is right without the golden's values; mostly nothing."""
    details = row.details
    if details is None or row.mismatched:
        return ""
    if details.distribution:
        unseen = f", of which {row.elements} numbers show no departure below {details.unseen or 0:.2g}"
        return f"{output(row.name)} is judged by its distribution ({details.distribution}){unseen}"
    if details.ties:
        return f"{output(row.name)}: {details.ties} positions differ where the values tie"
    return ""


def strings(name: str, golden: Tensor, actual: Tensor, differs: NDArray[np.intp]) -> str:
    """How many strings differ, and the first of them."""
    at = int(differs[0])
    got, right = actual.array.reshape(-1).tolist(), golden.array.reshape(-1).tolist()
    first = f"first{_at(golden, at)}: got {_cut(got[at])}, golden is {_cut(right[at])}"
    same = sorted(map(str, right)) == sorted(map(str, got))
    return "; ".join(
        [f"{output(name)}: {share(differs.size, golden.array.size)} differ", first]
        + (["same values in another order"] if same else [])
    )


def _at(value: Tensor, index: int) -> str:
    """`` at (1, 2)``; nothing for a scalar, which has one place only."""
    place = tuple(int(i) for i in np.unravel_index(index, value.array.shape))
    return f" at {place}" if place else ""


def _element(value: Tensor, index: int) -> str:
    element = value.array.item(index)
    if value.dtype.startswith(("int", "uint", "bool")):
        return str(int(element))
    return f"{complex(element) if value.dtype.startswith('complex') else float(element):.6g}"


def _some(names: Seq[object]) -> str:
    shown = ", ".join(map(_cut, names[:NAMES_LIMIT]))
    return shown + (f" and {len(names) - NAMES_LIMIT} more" if len(names) > NAMES_LIMIT else "")


def _cut(text: object) -> str:
    shown = repr(text)
    return shown if len(shown) <= NAME_LIMIT else shown[: NAME_LIMIT - 1] + "…"
