"""Arguments of `agent-check`, the command for authors of agents."""

from harness.cli.arguments.command import ONE_ARRAY, Commands, add_command, add_json, add_options
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
    command.add_argument(
        "command", nargs="+", metavar="COMMAND", help="program and arguments of the agent, after --"
    )
    command.add_argument(
        "--provider",
        default="CPUExecutionProvider",
        metavar="NAME",
        help="EP that the agent has to use; default: CPUExecutionProvider",
    )
    add_options(command)
    command.add_argument(
        "--only", default="", metavar="TEXT", help="only checks with this in their group or title"
    )
    command.add_argument(
        "--limit", type=float, dest="limit_s", default=60.0, metavar="S", help="seconds to wait; default: 60"
    )
    command.add_argument(
        "--large",
        type=count,
        dest="large_mib",
        default=1024,
        metavar="MIB",
        help="size of the largest tensor; default: 1024",
    )
    add_json(command, ONE_ARRAY)
