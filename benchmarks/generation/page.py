"""The section of docs/reference/detection.md about generated text."""

from collections.abc import Iterable, Sequence

from benchmarks.generation.faults import FAULTS
from benchmarks.generation.rows import Elsewhere, Healthy, Row

HEADING = "## Generated text"

_OTHERS = """The others are those of `matrices/generate.toml`, in one run, with all ways. A cell
counts if the EP computes at least a part of it. *Faults of the EP* fail as the matrix expects, with the
reason there and on [real providers](../explanation/real-providers.md#language-models): no false alarms.
"""

_WORDS = """{heading}

How many planted faults of language models each way to check finds. `python -m benchmarks.generation` writes
this section.

* {kinds} kinds of faults are planted in the [decoders](decoders.md), {count} times in all. A fault is a
  change of the model, or of what a session keeps and gives (*use*). The CPU EP then runs it, in the place of
  an EP.
* **generate** is the scenario with all ways but `lengths`: a cell fails, or not. **named** counts the records
  that name the foretold layer and position, of those for which there is one.
* **one pass** is the scenario `plain` with the same models, one token after cached ones, and the same
  tolerance.
* **greedy text** compares the first 8 tokens that are chosen after the prompt with the CPU EP's.

The kinds come from reports about shipped products and from the operators' definitions; how often each occurs
is unknown. Of some faults, position and layer are not foretold.

| check | faults found |
|---|---|
{totals}

Layer and position are named right in {named}.

Failures in shipped products, planted as they are described there:

{upstream}

### False alarms

Runs without a planted fault. Those of the CPU EP are at two levels of graph optimizations, with all ways but
`lengths`. {elsewhere}
### Kinds

{table}
{missed}"""


def section(rows: Sequence[Row], healthy: Sequence[Healthy], elsewhere: Sequence[Elsewhere] = ()) -> str:
    """Return the section, in Markdown.

    Args:
        rows: The planted faults.
        healthy: The healthy runs beside them, of the CPU EP.
        elsewhere: The targets of ``matrices/generate.toml``.
    """
    names = list(dict.fromkeys(row.fault for row in rows))
    foretold = [row for row in rows if row.named is not None]
    missed = [row for row in rows if not row.found]
    return _WORDS.format(
        heading=HEADING,
        kinds=len(names),
        count=len(rows),
        totals="\n".join(_total(rows, key, title) for key, title in _CHECKS),
        named=_share(sum(bool(row.named) for row in foretold), len(foretold)),
        elsewhere=_elsewhere(healthy, elsewhere),
        upstream=_table(
            ("failure", "planted as", "generate", "named", "one pass", "greedy text", "what the record says"),
            (_upstream(name, rows) for name in names if FAULTS[name].upstream),
        ),
        table=_table(
            ("fault", "what", "models", "generate", "named", "one pass", "greedy text"),
            (_kind(name, rows) for name in names),
        ),
        missed=_missed(missed),
    )


def _elsewhere(healthy: Sequence[Healthy], elsewhere: Sequence[Elsewhere]) -> str:
    accused = sum(one.accused for one in healthy)
    played = sum(one.ways for one in healthy)
    beside = (f"{len(healthy)}", f"{played:,}", "0", _share(accused, len(healthy)), "")
    rows = [("CPU EP, beside the faults", *beside)]
    for one in elsewhere:
        right = one.cells - one.expected
        others = ", ".join(f"{count} `{verdict}`" for verdict, count in one.left_out.items())
        counts = (f"{one.cells}", f"{one.ways:,}", f"{one.expected}", _share(one.accused, right))
        rows.append((f"`{one.target}`", *counts, others))
    columns = ("target", "cells", "ways", "faults of the EP", "false alarms", "cells that say nothing")
    cells = len(healthy) + sum(one.cells - one.expected for one in elsewhere)
    alarms = accused + sum(one.accused for one in elsewhere)
    ways = played + sum(one.ways for one in elsewhere)
    bound = "" if alarms else _none_in(cells, ways)
    words = f"Of all of these, {_share(alarms, cells)} are false alarms.{bound}"
    return f"{_OTHERS if elsewhere else ''}\n{_table(columns, rows)}\n\n{words}\n"


def _none_in(cells: int, ways: int) -> str:
    """Return what no false alarm in so many leaves possible: the rate that gives none in 1 of 20 cases."""
    cell, way = (f"{1 - 0.05 ** (1 / max(1, count)):.1%}" for count in (cells, ways))
    return (
        f" None in {cells} cells leaves a rate of\nup to {cell} possible at 95 %; the {ways:,} ways, which"
        f" are judged one by one,\nbut are no independent draws, one of {way}."
    )


def with_section(page: str, text: str) -> str:
    """Return a page whose section about generated text is replaced, or added at its end."""
    return f"{page.partition(HEADING)[0].rstrip()}\n\n{text.rstrip()}\n"


def section_of(page: str) -> str:
    """Return the section about generated text of a page; empty if it has none."""
    _, heading, rest = page.partition(HEADING)
    return heading + rest


_CHECKS = (("found", "generate"), ("once", "one pass"), ("text", "greedy text"))


def _total(rows: Sequence[Row], key: str, title: str) -> str:
    return f"| {title} | {_share(sum(getattr(row, key) for row in rows), len(rows))} |"


def _kind(name: str, rows: Iterable[Row]) -> tuple[str, ...]:
    own = [row for row in rows if row.fault == name]
    what = FAULTS[name].what + (" (use)" if FAULTS[name].use else "")
    return (name, what, ", ".join(row.model for row in own), *_counts(own))


def _upstream(name: str, rows: Iterable[Row]) -> tuple[str, ...]:
    own = [row for row in rows if row.fault == name]
    words = own[0].reason.partition(";")[0].replace("|", "/")
    return (FAULTS[name].upstream, FAULTS[name].what, *_counts(own), words)


def _counts(own: Sequence[Row]) -> tuple[str, ...]:
    foretold = [row for row in own if row.named is not None]
    return (
        _count([row.found for row in own]),
        _count([bool(row.named) for row in foretold]),
        _count([row.once for row in own]),
        _count([row.text for row in own]),
    )


def _count(found: Sequence[bool]) -> str:
    if len(found) == 1:
        return "yes" if found[0] else "no"
    return f"{sum(found)} of {len(found)}" if found else "-"


def _missed(missed: Sequence[Row]) -> str:
    if not missed:
        return ""
    lines = (f"* `{row.fault}` in `{row.model}`" for row in missed)
    return "\nNot found by `generate`:\n\n" + "\n".join(lines) + "\n"


def _share(count: int, of: int) -> str:
    return f"{count / of:.1%} ({count} of {of})" if of else "-"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
