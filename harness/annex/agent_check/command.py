"""The command `agent-check`, for authors of agents."""

from harness.cli.argument_values import count
from harness.cli.argument_values import limit_s as limit_s_of
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ONE_ARRAY, as_json, provider_options


def _declare(options: Options) -> RunCommand:
    command = options.many("COMMAND", "program and arguments of the agent, after --", str)
    text = "EP that the agent has to use; default: CPUExecutionProvider"
    provider = options.value("--provider", "NAME", text, str, "CPUExecutionProvider")
    of_provider = provider_options(options)
    only = options.value("--only", "TEXT", "only checks with this in their group or title", str, "")
    limit_s = options.value("--limit", "S", "seconds to wait; default: 60", limit_s_of, 60.0)
    large_mib = options.value("--large", "MIB", "size of the largest tensor; default: 1024", count, 1024)
    json = as_json(options, ONE_ARRAY)

    def run(given: GivenArguments) -> int:
        from harness.annex.agent_check.command_agent_check import agent_check

        return agent_check(
            given[command],
            given[provider],
            given[of_provider],
            given[only],
            given[limit_s],
            given[large_mib],
            as_json=given[json],
        )

    return run


AGENT_CHECK = Command(
    name="agent-check",
    summary="check an agent of your own against the agent protocol",
    aim="maintain",
    declare=_declare,
    exit_codes={0: "it does what it must", 1: "a check has failed", 2: "an argument is wrong"},
)
