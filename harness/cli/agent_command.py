"""The commands of `agent`."""

from harness.cli.command_type import Command, CommandGroup
from harness.cli.options import GivenArguments, Options, RunCommand


def _declare_build(options: Options) -> RunCommand:
    text = "C11 compiler: a name, or a path; default: cc, or that of the target"
    compiler = options.value("--cc", "CC", text, str)
    text = "triple of another machine, such as aarch64-linux-gnu; default: this one"
    target = options.value("--target", "TRIPLE", text, str, "")
    out = options.path("--out", "FILE", "program to write; default: ep-harness-agent")

    def run(given: GivenArguments) -> int:
        from harness.cli.agent_build import build_native_agent

        return build_native_agent(given[out], compiler=given[compiler], target=given[target])

    return run


AGENT = CommandGroup(
    name="agent",
    summary="build the agent in C, for machines without a Python",
    aim="maintain",
    commands=(
        Command(
            name="build",
            summary="compile the agent in C",
            declare=_declare_build,
            exit_codes={0: "it is built", 2: "there is no compiler, or it fails"},
        ),
    ),
)
