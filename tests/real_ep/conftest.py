"""Which of the real execution providers have to be usable here."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from harness.plan.target import Runtime
from harness.runtimes.environments import build
from harness.runtimes.installer import InstallError
from harness.runtimes.javascript import find_browser, find_node
from tests.kit import is_intel


@pytest.fixture(scope="session")
def elsewhere() -> dict[str, str]:
    """Providers without a device in this machine -> the reason; asked of the system, not of the product."""
    return (
        {} if is_intel() else {"OpenVINOExecutionProvider": "OpenVINO's plugin offers devices of Intel alone"}
    )


@pytest.fixture(scope="session")
def require(elsewhere: dict[str, str]) -> Callable[[str, str], None]:
    """``require(provider, problem)``: a problem is a failure in CI where its device is here, else a skip."""

    def demand(provider: str, problem: str) -> None:
        if problem and provider not in elsewhere and os.environ.get("CI", "").lower() == "true":
            pytest.fail(f"{provider} is unavailable: {problem}")
        if problem:
            pytest.skip(f"{provider} is unavailable: {problem}")

    return demand


@pytest.fixture(scope="session")
def built(require: Callable[[str, str], None]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """``built(runtime)``: a runtime of Node.js or a browser, once its packages are installed."""
    known: dict[str, str] = {}

    def demand(runtime: dict[str, Any]) -> dict[str, Any]:
        name = runtime["packages"][0]
        if name not in known:
            known[name] = _missing(runtime)
        require(name, known[name])
        return runtime

    return demand


def _missing(runtime: dict[str, Any]) -> str:
    try:
        find_node(runtime.get("node", ""))
        if "browser" in runtime:
            find_browser(runtime["browser"])
        build(
            Runtime(
                **{
                    **runtime,
                    "packages": tuple(runtime["packages"]),
                    "flags": tuple(runtime.get("flags", ())),
                }
            )
        )
    except InstallError as error:
        return str(error)
    return ""
