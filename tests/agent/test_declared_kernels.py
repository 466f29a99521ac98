"""The kernels that a plugin declares, as texts."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from harness.agent.declared_kernels import declared_kernels

native: Any = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")


def kernel(name: str, first: int, last: int, domain: str = "") -> Any:
    return SimpleNamespace(op_name=name, domain=domain, version_range=(first, last))


def declare(monkeypatch: pytest.MonkeyPatch, kernels: Iterable[Any]) -> None:
    monkeypatch.setattr(native, "get_registered_ep_kernel_defs", lambda _: kernels, raising=False)


def test_each_kernel_is_told_once_with_its_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = (1 << 31) - 1
    found = [kernel("Add", 14, latest), kernel("Add", 7, 12), kernel("Add", 13, 13), kernel("Add", 7, 12)]
    declare(monkeypatch, [*found, kernel("Gelu", 1, latest, "com.microsoft")])
    assert declared_kernels("Acme") == ["Add 13", "Add 14-", "Add 7-12", "com.microsoft:Gelu 1-"]


def test_a_provider_that_declares_none_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, [])
    assert declared_kernels("Acme") is None

    def fail(_: str) -> None:
        raise RuntimeError("Could not determine default backend path for device")

    monkeypatch.setattr(native, "get_registered_ep_kernel_defs", fail, raising=False)
    assert declared_kernels("Acme") is None
    monkeypatch.delattr(native, "get_registered_ep_kernel_defs")
    assert declared_kernels("Acme") is None  # before 1.25
