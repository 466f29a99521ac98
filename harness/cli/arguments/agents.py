"""Arguments of `agent-check`, the command for authors of agents."""

from harness.cli.arguments.command import ONE_ARRAY, Commands, add_command, add_json, add_options, add_value
from harness.cli.arguments.values import count


def add_agents(commands: Commands) -> None:
    """Declare `agent-check`."""
    command = add_command(
        commands,
        "agent-check",
        "check an agent of your own against the agent protocol",
        "agent_check.agent_check",
        {0: "it does what it must", 1: "a check has failed", 2: "an argument is wrong"},
    )
    add_value(command, "command", "COMMAND", "program and arguments of the agent, after --", nargs="+")
    add_value(
        command,
        "--provider",
        "NAME",
        "EP that the agent has to use; default: CPUExecutionProvider",
        default="CPUExecutionProvider",
    )
    add_options(command)
    add_value(command, "--only", "TEXT", "only checks with this in their group or title", default="")
    add_value(
        command, "--limit", "S", "seconds to wait; default: 60", type=float, dest="limit_s", default=60.0
    )
    add_value(
        command,
        "--large",
        "MIB",
        "size of the largest tensor; default: 1024",
        type=count,
        dest="large_mib",
        default=1024,
    )
    add_json(command, ONE_ARRAY)
