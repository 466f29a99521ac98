"""`ep-harness ops`: what the book of operators has about one operator, or the list of all."""

from collections.abc import Iterable, Iterator

from harness.cli.output import print_result, wrapped
from harness.core.text.errors import EXIT_OK, UsageError, valid_names
from harness.operators.book import ROWS
from harness.operators.row import FACTS, BookRow
from harness.operators.words import FAMILY_OF, facts_in_words


def ops(name: str, *, as_json: bool) -> int:
    """Print an operator's facts with their meanings and sources; without a name, all operators."""
    if not name:
        print_result([_value(row) for row in ROWS], _listed(ROWS), as_json=as_json)
        return EXIT_OK
    rows = [row for row in ROWS if name in (row.name, *row.names)]
    if not rows:
        known = sorted({known for row in ROWS for known in row.names})
        raise UsageError.at("ops", f"no operator {name!r}", valid_names(name, known))
    lines = [line for row in rows for line in _described(row)]
    print_result([_value(row) for row in rows], lines, as_json=as_json)
    return EXIT_OK


def _value(row: BookRow) -> dict[str, object]:
    facts = {
        fact: {"value": value or True, "meaning": FACTS[fact].meaning, "source": FACTS[fact].source}
        for fact, value in facts_in_words(row).items()
    }
    return {"operators": row.names, "family": FAMILY_OF[row.names[0]], "note": row.note, "facts": facts}


def _listed(rows: Iterable[BookRow]) -> Iterator[str]:
    for row in rows:
        facts = ", ".join(facts_in_words(row)) or "nothing special"
        yield from wrapped(facts, f"{', '.join(row.names)}: ", "    ")


def _described(row: BookRow) -> Iterator[str]:
    yield f"{', '.join(row.names)} ({FAMILY_OF[row.names[0]].replace('_', ' ')})"
    if row.note:
        yield from wrapped(row.note, "  ")
    facts = facts_in_words(row)
    if not facts:
        yield "  nothing special: it rounds once"
    for fact, value in facts.items():
        yield f"  {fact}: {value}" if value else f"  {fact}"
        yield from wrapped(FACTS[fact].meaning, "    ")
        yield from wrapped(f"Source: {FACTS[fact].source}.", "    ")
