"""The class of the machine that a target ran on, as conditions of a ``where``."""

import glob
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.text.version_range import exactly
from harness.plan.surroundings import Surroundings
from harness.plan.where import NEGATION, Where, conditions, features_of, holds

_NAMED = ("onnxruntime", "ep_version", "driver")
"""Conditions whose value means nothing without their key."""


def class_of(seen: Surroundings) -> Where:
    """Return the conditions: releases of runtime and provider, system, and computing device.

    The device is the name of an accelerator, or of the program in its place; unless an accelerator computes,
    it includes the features of the processor. Facts that the fingerprint lacks are no conditions. A driver is
    no condition either: its next release should be compared with the known failures.
    """
    simulated = seen.simulated_by if seen.simulated_by in seen.devices else ""
    name = seen.device if seen.accelerated else simulated
    ep_version = exactly(seen.ep_version) if seen.ep_version != seen.onnxruntime else ""
    return Where(
        onnxruntime=exactly(seen.onnxruntime),
        ep_version=ep_version,
        device=(glob.escape(name),) if name else (),
        architecture=tuple(map(glob.escape, seen.architecture[:1])),
        os=(seen.os,) if seen.os else (),
        processor=() if seen.accelerated else tuple(_features(seen)),
        simulator=seen.simulator,
    )


def class_words(where: Where) -> str:
    """Return the existing conditions in one line of words, without features that the machine lacks."""
    named = (f"{key} {_words(wanted)}" for key, wanted in conditions(where).items() if key in _NAMED)
    has = (word for word in where.processor if not word.startswith(NEGATION))
    plain = (*where.architecture, *where.os, *where.device, " ".join(has))
    return ", ".join(filter(None, (*named, *plain))).replace("==", "") or "any machine"


def class_differences(where: Where, seen: Surroundings) -> tuple[str, ...]:
    """Return why a machine belongs to another class, one phrase for each condition that does not hold."""
    return tuple(
        _difference(key, wanted, seen)
        for key, wanted in conditions(where).items()
        if not holds(msgspec.structs.replace(Where(), **{key: wanted}), seen, "")[0]
    )


def _features(seen: Surroundings) -> Iterator[str]:
    has = seen.features
    if has is not None:
        yield from (name if name in has else f"{NEGATION}{name}" for name in features_of(seen.architecture))


def _difference(key: str, wanted: Any, seen: Surroundings) -> str:
    if key == "processor" and seen.features is not None:
        lacks = [word for word in wanted if not word.startswith(NEGATION) and word not in seen.features]
        has = [word.removeprefix(NEGATION) for word in wanted if word.removeprefix(NEGATION) in seen.features]
        more = [word for word in has if f"{NEGATION}{word}" in wanted]
        told = (f"has no {', '.join(lacks)}" if lacks else "", f"has {', '.join(more)}" if more else "")
        return f"the processor here {' and '.join(filter(None, told))}"
    here: Any = {
        "onnxruntime": seen.onnxruntime,
        "ep_version": seen.ep_version,
        "device": seen.device,
        "architecture": seen.architecture[:1],
        "os": seen.os,
        "simulator": "" if seen.simulator is None else _words(seen.simulator),
    }.get(key, "")
    return f"{key} {_words(wanted)}, here {_words(here) or 'unknown'}"


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else " ".join(value)
