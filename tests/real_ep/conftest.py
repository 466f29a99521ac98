"""Which of the real execution providers have to be usable here."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

CPUINFO = Path("/proc/cpuinfo")


@pytest.fixture(scope="session")
def elsewhere() -> dict[str, str]:
    """Providers without a device in this machine -> the reason; asked of the system, not of the product."""
    processor = CPUINFO.read_text(encoding="utf-8") if CPUINFO.is_file() else ""
    if "GenuineIntel" in processor:
        return {}
    return {"OpenVINOExecutionProvider": "OpenVINO's plugin offers devices of Intel alone"}


@pytest.fixture(scope="session")
def require(elsewhere: dict[str, str]) -> Callable[[str, str], None]:
    """``require(provider, problem)``: a problem is a failure in CI where its device is here, else a skip."""

    def demand(provider: str, problem: str) -> None:
        if problem and provider not in elsewhere and os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"{provider} is unavailable: {problem}")
        if problem:
            pytest.skip(f"{provider} is unavailable: {problem}")

    return demand
