"""Write the page of the book of operators."""

from collections.abc import Iterator

from harness.operators.book import FAMILIES
from harness.operators.row import FACTS
from harness.operators.words import facts_in_words

_HEAD = """\
# Operators

What the harness knows about each operator of ONNX, of `ai.onnx.ml`, and of onnxruntime's own domain
`com.microsoft`: how it rounds, which values it takes, where its result is undefined, which shapes it makes.
Checks, generated inputs, [rounding noise](../explanation/tolerances.md) and estimates of work read it from
here. `ep-harness ops NAME` prints one operator with the meaning and the source of each fact.
`tox -e generate` writes this page from the files in `harness/operators/families`.

An operator without a row, such as one of a vendor's domain, is judged as if it rounded once, and the
[record](records.md) says so (`default_noise` of its `content`). One with the name of a known operator rounds
as that does.

## Facts

"""


def reference() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD + "| fact | meaning | source |", "|---|---|---|", *_facts(), *_families(), ""])


def _facts() -> Iterator[str]:
    for name, fact in FACTS.items():
        yield f"| {name} | {fact.meaning} | {fact.source} |"


def _families() -> Iterator[str]:
    for family, rows in FAMILIES.items():
        plain: list[str] = []
        yield from ("", f"## {family.replace('_', ' ').capitalize()}", "")
        lines = []
        for row in rows:
            names = ", ".join(f"`{name}`" for name in row.names)
            facts = [f"{fact}: {value}" if value else fact for fact, value in facts_in_words(row).items()]
            if facts or row.note:
                lines.append(f"| {names} | {'; '.join(facts)} | {row.note} |")
            else:
                plain.append(names)
        if lines:
            yield from ("| operator | facts | note |", "|---|---|---|", *lines)
        if plain:
            yield from (
                ("", f"Nothing special: {', '.join(plain)}.")
                if lines
                else (f"Nothing special: {', '.join(plain)}.",)
            )
