"""Scenario ``cpu_fallback_disabled``: a session that may leave no node to the CPU provider."""

from __future__ import annotations

import re
from typing import Any

from harness.agent.errors import UnsupportedError
from harness.agent.target import CPU
from harness.agent.text import clean
from harness.agent.turn import Turn

KEY = "session.disable_cpu_ep_fallback"
REFUSAL = re.compile(r"fallback to (?:the )?(?:default )?CPU EP")


def play(turn: Turn) -> None:
    """Make the session under that condition, and run it.

    Raises:
        UnsupportedError: Some node would be left to the CPU provider, or the target is that provider.
    """
    if CPU in turn.target.chain:
        raise UnsupportedError("the target names %s itself" % CPU)

    def adjust(settings: Any) -> None:
        settings.add_session_config_entry(KEY, "1")

    turn.adjust = adjust
    try:
        turn.create()
    except Exception as error:
        if REFUSAL.search(clean(error)):
            raise UnsupportedError(clean(error)) from error
        raise
    turn.facts["refused"] = False
    turn.run()
    turn.conclude()
