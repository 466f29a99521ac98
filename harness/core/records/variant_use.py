"""How a model of a package is used: by which provider, with which options of its own."""

from collections.abc import Mapping

import msgspec

ANSWER_WORDS = {
    "EP_SUPPORTED_OPTIMAL": "optimal",
    "EP_SUPPORTED_PREFER_RECOMPILATION": "should be compiled again",
    "EP_NOT_APPLICABLE": "matches",
    "EP_UNSUPPORTED": "refused by the EP",
}
"""Answer of an EP about a variant's compatibility string -> words."""


class VariantUse(msgspec.Struct, frozen=True, kw_only=True):
    """How one model of a package is used.

    Attributes:
        ep: The one provider that it is for; empty for any.
        options: Provider options that it brings.
        entries: Session configuration entries that it brings, without paths.
        is_component: Whether it stands for a whole component, from which a runtime selects.
    """

    ep: str = ""
    options: dict[str, str] = {}
    entries: dict[str, str] = {}
    is_component: bool = False


Uses = Mapping[str, Mapping[str, VariantUse]]
"""Suite -> model -> how it is used, for packages."""

NO_USES: Uses = {}
