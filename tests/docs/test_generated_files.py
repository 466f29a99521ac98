"""What is generated in docs/reference is what the code says today."""

import pytest

from docs.site.generate import GENERATED, REFERENCE


@pytest.mark.parametrize("name", GENERATED)
def test_the_file_is_as_it_is_generated(name: str) -> None:
    assert (REFERENCE / name).read_text("utf-8") == GENERATED[name](), "run: tox -e generate"


def test_every_schema_is_generated() -> None:
    assert {path.name for path in (REFERENCE).glob("*.json")} <= GENERATED.keys()
