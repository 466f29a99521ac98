"""What tests of the agent in C share."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def library() -> str:
    """Return the path of the library in this environment's wheel."""
    spec = importlib.util.find_spec("onnxruntime")
    assert spec is not None
    assert spec.origin is not None
    found = sorted((Path(spec.origin).parent / "capi").glob("libonnxruntime.so.1.*"))
    if not found:
        pytest.skip("this wheel has no libonnxruntime.so: those before 1.19")
    return str(found[0])
