"""`tox -e compat-<wheel>`: each has something to run."""

import configparser
import re
from pathlib import Path

import pytest

from harness.data_files import data_root
from harness.plan.matrix import read_matrix

TOX = Path(__file__).parent.parent / "tox.ini"


@pytest.mark.skipif(not TOX.is_file(), reason="these are tests of an installed package")
def test_each_wheel_has_targets_and_each_target_a_wheel() -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(TOX, encoding="utf-8")
    (section,) = (name for name in parser.sections() if name.startswith("testenv:compat-"))
    found = re.search(r"\{(.*)\}", section)
    assert found is not None
    wheels = found[1].split(",")
    assert set(re.findall(r"WHEEL = (\w+)", parser[section]["set_env"])) == set(wheels)
    targets = [target.name for target in read_matrix(data_root() / "matrices" / "wheels.toml").targets]
    for wheel in wheels:
        assert any(target.startswith(wheel) for target in targets), wheel
    for target in targets:
        assert [wheel for wheel in wheels if target.startswith(wheel)] != [], target
