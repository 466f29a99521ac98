"""Serve as an agent whose hello comes on standard input: ``python -m harness.agent``.

A harness sends the sources itself. This is the agent as a command, such as
``ep-harness agent-check -- python -m harness.agent``.
"""

import os

from harness.agent.importer import start_agent
from harness.agent.sources import sources_in

folder = os.path.dirname(os.path.abspath(__file__))
start_agent(sources_in(folder), folder)
