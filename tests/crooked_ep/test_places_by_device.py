"""A place that is one of several devices of a plugin: its cells are proven there."""

import json
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.crooked_ep.models import small_models, write_model
from tests.crooked_ep.planted_run import PROVIDER
from tests.kit import read_records

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(sys.platform != "linux", reason="compiled for Linux"),
]


def test_a_place_is_the_device_of_its_number(crooked_ep: Path, tmp_path: Path) -> None:
    write_model(tmp_path / "models" / "one", small_models()["add"], "one")
    (tmp_path / "matrix.toml").write_text(
        f"""schema = 1
models = {{ folders = ["models"] }}
[[target]]
name = "second"
provider = "{PROVIDER}"
plugin = {json.dumps(str(crooked_ep))}
places = [{{ name = "device-2", device = {{ number = "2" }} }}]
""",
        encoding="utf-8",
    )
    assert main(["run", str(tmp_path / "matrix.toml"), "--out", str(tmp_path / "run"), "--no-report"]) == 0
    (record,) = read_records(tmp_path / "run")
    assert record.device is not None
    assert (record.place, record.device.asked) == ("device-2", "NPU 1 of Crooked")
    assert record.device.not_proven == ""
