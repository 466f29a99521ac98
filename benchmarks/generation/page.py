"""The section of docs/reference/detection.md about generated text."""

from collections.abc import Iterable, Sequence

from benchmarks.generation.faults import FAULTS
from benchmarks.generation.rows import Healthy, Row

HEADING = "## Generated text"

_WORDS = """{heading}

How many planted faults of language models each way to check finds. `python -m benchmarks.generation` writes
this section.

* {kinds} kinds of faults are planted in the [decoders](decoders.md), each in one model. A fault is a change of
  the model, or of what a session keeps and gives (*use*). The CPU EP then runs it, in the place of an EP.
* **generate** is the scenario with all ways but `lengths`: a cell fails, or not. **named** counts the records
  that name the foretold layer and position, of those for which there is one.
* **one pass** is the scenario `plain` with the same models, one token after cached ones, and the same
  tolerance.
* **greedy text** compares the first 8 tokens that are chosen after the prompt with the CPU EP's.

| check | faults found |
|---|---|
{totals}

Layer and position are named right in {named}. Of healthy runs of the CPU EP at two levels of graph
optimizations, {accused} fail.

Failures in shipped products, planted as they are described there:

{upstream}

### Kinds

{table}
{missed}"""


def section(rows: Sequence[Row], healthy: Sequence[Healthy]) -> str:
    """Return the section, in Markdown."""
    names = list(dict.fromkeys(row.fault for row in rows))
    foretold = [row for row in rows if row.named is not None]
    missed = [row for row in rows if not row.found]
    return _WORDS.format(
        heading=HEADING,
        kinds=len(names),
        totals="\n".join(_total(rows, key, title) for key, title in _CHECKS),
        named=_share(sum(bool(row.named) for row in foretold), len(foretold)),
        accused=_share(sum(one.accused for one in healthy), len(healthy)),
        upstream=_table(
            ("failure", "planted as", "generate", "named", "one pass", "greedy text", "what the record says"),
            (_upstream(name, rows) for name in names if FAULTS[name].upstream),
        ),
        table=_table(
            ("fault", "what", "model", "generate", "named", "one pass", "greedy text"),
            (_kind(name, rows) for name in names),
        ),
        missed=_missed(missed),
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
        f"{sum(row.found for row in own)} of {len(own)}",
        f"{sum(bool(row.named) for row in foretold)} of {len(foretold)}" if foretold else "-",
        f"{sum(row.once for row in own)} of {len(own)}",
        f"{sum(row.text for row in own)} of {len(own)}",
    )


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
