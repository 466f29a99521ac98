"""The arguments of a command: each is declared once, as a handle that has the type of its value.

A handle is the only way to a value, so mypy follows an option from its declaration to the function that gets
it. Nothing heavy is imported here: `--help` is fast.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar, cast, overload

ArgumentValue = TypeVar("ArgumentValue")
Value_co = TypeVar("Value_co", covariant=True)
Default = TypeVar("Default")


class Argument(Generic[Value_co]):
    """A declared argument; ``GivenArguments`` has its value."""

    def __init__(self, dest: str) -> None:
        self.dest = dest


class GivenArguments:
    """The values of one command line."""

    def __init__(self, values: argparse.Namespace) -> None:
        self._values = values

    def __getitem__(self, argument: Argument[ArgumentValue]) -> ArgumentValue:
        """Return the value of an argument; its default if it was not given."""
        return cast("ArgumentValue", getattr(self._values, argument.dest))


RunCommand = Callable[[GivenArguments], int]
"""Runs a command with the values of its arguments, and returns the exit code."""


class Options:
    """Declares arguments; the ``text`` of each is the line about it in the command's help."""

    def __init__(self, container: argparse._ActionsContainer) -> None:
        self._container = container

    def either(self) -> "Options":
        """Return a declarer of options that exclude each other."""
        return Options(self._container.add_mutually_exclusive_group())

    def one(self, metavar: str, text: str, read: Callable[[str], ArgumentValue]) -> Argument[ArgumentValue]:
        """Declare a positional argument; ``read`` turns its text into the value."""
        return self._add(metavar, metavar=metavar, help=text, type=read)

    def one_or(
        self, metavar: str, text: str, read: Callable[[str], ArgumentValue], default: Default
    ) -> Argument[ArgumentValue | Default]:
        """Declare a positional argument that may be left out."""
        return self._add(metavar, metavar=metavar, help=text, type=read, nargs="?", default=default)

    def many(
        self, metavar: str, text: str, read: Callable[[str], ArgumentValue], least: int = 1
    ) -> Argument[list[ArgumentValue]]:
        """Declare a positional argument that is given once or more; with ``least=0``, maybe not at all."""
        return self._add(metavar, metavar=metavar, help=text, type=read, nargs="+" if least else "*")

    def required(
        self, name: str, metavar: str, text: str, read: Callable[[str], ArgumentValue]
    ) -> Argument[ArgumentValue]:
        """Declare an option that has to be given."""
        return self._add(name, metavar=metavar, help=text, type=read, required=True)

    @overload
    def value(
        self,
        name: str,
        metavar: str,
        text: str,
        read: Callable[[str], ArgumentValue],
        *,
        into: "Argument[ArgumentValue | None] | None" = None,
    ) -> Argument[ArgumentValue | None]: ...
    @overload
    def value(
        self, name: str, metavar: str, text: str, read: Callable[[str], ArgumentValue], default: Default
    ) -> Argument[ArgumentValue | Default]: ...
    def value(
        self,
        name: str,
        metavar: str,
        text: str,
        read: Callable[[str], Any],
        default: Any = None,
        *,
        into: Argument[Any] | None = None,
    ) -> Argument[Any]:
        """Declare an option with a value; its default is None. ``into`` is an option that it stands for."""
        return self._add(name, into, metavar=metavar, help=text, type=read, default=default)

    def values(
        self, name: str, metavar: str, text: str, read: Callable[[str], ArgumentValue]
    ) -> Argument[Sequence[ArgumentValue]]:
        """Declare an option with one or more values; empty if it is not given."""
        return self._add(name, metavar=metavar, help=text, type=read, nargs="+", default=())

    def repeated(
        self, name: str, metavar: str, text: str, read: Callable[[str], ArgumentValue]
    ) -> Argument[list[ArgumentValue]]:
        """Declare an option that may be repeated; empty if it is not given."""
        return self._add(name, metavar=metavar, help=text, type=read, action="append", default=[])

    def path(self, name: str, metavar: str, text: str) -> Argument[Path | None]:
        """Declare an option whose value is a path."""
        return self.value(name, metavar, text, Path)

    def choice(self, name: str, choices: Sequence[str], text: str, default: str) -> Argument[str]:
        """Declare an option with one of some values."""
        return self._add(name, choices=choices, help=text, default=default)

    def flag(self, name: str, text: str, *, given: bool = True) -> Argument[bool]:
        """Declare an option without a value. ``given`` is what it means if it is given."""
        return self._add(name, help=text, action="store_true" if given else "store_false")

    def constant(
        self,
        name: str,
        text: str,
        value: ArgumentValue,
        default: Default,
        *,
        into: "Argument[ArgumentValue | Default] | None" = None,
    ) -> Argument[ArgumentValue | Default]:
        """Declare an option without a value that stands for one. ``into`` is an option that it stands for."""
        return self._add(name, into, help=text, action="store_const", const=value, default=default)

    def _add(self, name: str, into: Argument[Any] | None = None, **how: Any) -> Argument[Any]:
        if into is not None:
            how["dest"] = into.dest
        return Argument(self._container.add_argument(name, **how).dest)


class Once(argparse.Action):
    """Takes one value; given twice, it is an error, where argparse would keep the last one."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Keep the value, unless there is one."""
        if option_string and getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(self, "given twice; give it once")
        setattr(namespace, self.dest, values)
