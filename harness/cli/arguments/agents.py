"""Arguments of `agent-check`, the command for authors of agents."""

from harness.cli.arguments import declare
from harness.cli.arguments.values import count, limit_s


def add_agents(commands: declare.Commands) -> None:
    """Declare `agent-check`."""
    command = declare.command(
        commands,
        "agent-check",
        "check an agent of your own against the agent protocol",
        "agent_check.agent_check",
        {0: "it does what it must", 1: "a check has failed", 2: "an argument is wrong"},
    )
    declare.value(command, "command", "COMMAND", "program and arguments of the agent, after --", nargs="+")
    declare.value(
        command,
        "--provider",
        "NAME",
        "EP that the agent has to use; default: CPUExecutionProvider",
        default="CPUExecutionProvider",
    )
    declare.options(command)
    declare.value(command, "--only", "TEXT", "only checks with this in their group or title", default="")
    declare.value(
        command, "--limit", "S", "seconds to wait; default: 60", type=limit_s, dest="limit_s", default=60.0
    )
    declare.value(
        command,
        "--large",
        "MIB",
        "size of the largest tensor; default: 1024",
        type=count,
        dest="large_mib",
        default=1024,
    )
    declare.json(command, declare.ONE_ARRAY)
