"""What a check tells of variants that are right: those that gain nothing, and options without effect."""

from collections.abc import Iterator, Mapping

import msgspec

from harness.catalog.check_options import check_options
from harness.core.findings.shipping import SLOWER
from harness.core.findings.variant_pace import beside_cpu, beside_others
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.corpus.suites.suite import Suite
from harness.plan.known_provider import known_provider
from harness.plan.target import Target


class PackageRemark(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a variant, or a selection, that is right all the same.

    Attributes:
        model: The variant as ``component/variant``, or the component.
        told: What was seen, without a final stop.
    """

    model: str
    target: str
    told: str


def speed_remarks(
    alone: Mapping[tuple[str, str], Record],
    selected: Mapping[tuple[str, str], Record],
    simulated: Mapping[str, str],
) -> Iterator[PackageRemark]:
    """Yield variants and selections that are slower than another one, by the rule of ``advise``.

    The time of a target in ``simulated``, whose device is a program, is compared with nothing.
    """
    on_devices = {key: one for key, one in alone.items() if key[1] not in simulated}
    cpus: dict[str, tuple[str, Record]] = {}
    for (name, _), one in on_devices.items():
        if one.provider == CPU_PROVIDER and one.family is Family.PASSED:
            cpus.setdefault(name.partition("/")[0], (name, one))
    for (name, target), one in on_devices.items():
        cpu = cpus.get(name.partition("/")[0])
        if cpu is not None and one.provider != CPU_PROVIDER and (told := beside_cpu(one, cpu[1], cpu[0])):
            yield PackageRemark(model=name, target=target, told=told.removeprefix(SLOWER))
    for (component, target), one in selected.items():
        chosen = f"{component}/{one.scenario.get('chosen')}"
        others = {
            name: each
            for (name, where), each in on_devices.items()
            if where == target and name.startswith(f"{component}/")
        }
        if found := beside_others(chosen, others).removeprefix(SLOWER):
            yield PackageRemark(model=component, target=target, told=f"it selects {chosen}: {found}")


def idle_options(
    suite: Suite, targets: Mapping[str, Target], alone: Mapping[tuple[str, str], Record]
) -> Iterator[PackageRemark]:
    """Yield variants whose own options changed no bit, with what the catalogue has to say about them."""
    for (name, target), one in alone.items():
        own = suite.uses[name].options
        if one.effect is None or one.effect.seen or own.keys().isdisjoint(one.effect.options):
            continue
        options = {key: value for key, value in own.items() if key in one.effect.options}
        told = f"the outputs are bit-identical without {', '.join(options)}"
        provider = known_provider(targets[target].provider)
        if provider is not None:
            plugin = targets[target].plugin is not None
            told = "; ".join(
                (told, *(remark.what for remark in check_options(provider, options, plugin=plugin)))
            )
        yield PackageRemark(model=name, target=target, told=told)
