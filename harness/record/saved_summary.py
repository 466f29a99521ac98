"""The saved data of an application's processes, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def events_summary(events: Iterable[Mapping[str, str]]) -> str:
    """Return what the processes of an application did, in one line."""
    saved: dict[str, str] = {}
    unsaved: dict[str, None] = {}
    loaded = False
    for event in events:
        loaded = loaded or event["what"] == "loaded"
        if event["what"] == "saved":
            saved[event["folder"]] = event["model"]
        elif event["what"] == "dropped":
            saved.pop(event["folder"], None)
        elif event["what"] == "unsaved":
            unsaved[f"{event['model']}: {event['why']}"] = None
    if saved:
        text = f"saved {_count(len(saved), 'data set')} of {_count(len(set(saved.values())), 'model')}: "
        text += _some(sorted(saved))
    elif unsaved:
        text = "saved nothing"
    elif loaded:
        text = "saved nothing: the application made no session with onnxruntime, or ran none"
    else:
        text = "saved nothing: no Python of the application imported onnxruntime"
    return " ".join((text + (f"; not saved: {_some(list(unsaved))}" if unsaved else "")).split())


def _some(texts: list[str]) -> str:
    most = 4
    more = f", and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
