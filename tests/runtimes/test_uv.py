"""The end of a uv that does not come to one."""

import os
import threading
import time
from pathlib import Path

import pytest

from harness.plan.target import Runtime
from harness.runtimes import installer
from harness.runtimes.environments import build
from harness.runtimes.installer import InstallError
from harness.runtimes.uv import Uv
from tests.kit import wait_for

HANGING = Runtime(packages=("hang",))


def leftovers(log: Path) -> list[str]:
    folder = log.parent / "cache" / "runtimes"
    return [one.name for one in folder.iterdir() if not one.name.endswith(".lock")]


def test_a_build_can_be_cancelled(fake_uv: Path) -> None:
    uv, raised = Uv(), []

    def work() -> None:
        with pytest.raises(InstallError) as caught:
            build(HANGING, uv)
        raised.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    running = Path(f"{fake_uv}.pid")
    wait_for(running.is_file)
    uv.cancel()
    thread.join(5)
    assert len(raised) == 1
    assert leftovers(fake_uv) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(running.read_text()), 0)
    with pytest.raises(InstallError, match="cancelled"):
        uv.run("venv", folder=fake_uv.parent)


def test_a_build_is_killed_at_its_time_limit(fake_uv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "INSTALL_LIMIT_S", 1.5)
    started = time.monotonic()
    with pytest.raises(InstallError, match=r"uv was killed after 1\.5 s"):
        build(HANGING)
    assert time.monotonic() - started < 30  # it would hang for a minute
    assert leftovers(fake_uv) == []
