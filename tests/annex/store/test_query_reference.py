"""The views have the columns that docs/reference/query.md is made of."""

import pytest

from harness.annex.store.schema import VIEWS
from harness.annex.store.store import Store


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: str(view.name))
def test_a_view_has_the_columns_and_types_that_it_says(store: Store, view: object) -> None:
    (found,) = (each for each in VIEWS if each is view)
    described = [row[:2] for row in store.rows(f"DESCRIBE {found.name}")]
    assert described == [(column.name, column.kind) for column, _ in found.columns]
    assert list(store.rows(f"FROM {found.name}")) != []
