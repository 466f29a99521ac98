"""docs/reference/query.md names every column of every view."""

from pathlib import Path

import pytest

from harness.store.reference import reference
from harness.store.schema import VIEWS
from harness.store.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "query.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="these are tests of an installed package")
def test_the_page_has_the_views_as_they_are() -> None:
    assert "\n".join(reference()).strip() in PAGE.read_text("utf-8")


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: str(view.name))
def test_a_view_has_the_columns_and_types_that_it_says(store: Store, view: object) -> None:
    (found,) = (each for each in VIEWS if each is view)
    described = [row[:2] for row in store.rows(f"DESCRIBE {found.name}")]
    assert described == [(column.name, column.kind) for column, _ in found.columns]
    assert list(store.rows(f"FROM {found.name}")) != []
