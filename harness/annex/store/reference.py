"""The views as tables of ``docs/reference/query.md``."""

from collections.abc import Iterator

from harness.annex.store.schema import VIEWS
from harness.report.words.inert import markdown_table


def reference() -> Iterator[str]:
    """Yield the lines of the sections about the views, as they are in `docs/reference/query.md`."""
    for view in VIEWS:
        yield f"### `{view.name}`"
        yield ""
        yield f"A row is {view.row}."
        yield ""
        yield from markdown_table(
            ("column", "type", "meaning"),
            ((f"`{column.name}`", f"`{column.kind}`", column.meaning) for column, _ in view.columns),
        )
        yield ""
