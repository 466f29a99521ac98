"""What a variant is held against, and what a runtime selects from."""

from typing import Any

import msgspec

from harness.corpus.model.origins import Origins


class Sibling(msgspec.Struct, frozen=True, kw_only=True):
    """What judges a variant: the answer of another variant of its component.

    Attributes:
        reference: The model whose golden it is, within the same suite.
        computes: The precision that the variant computes in, a key of
            ``harness.core.comparison.tolerance.FLOORS``.
        digest: Digest of the variant's own model, with inputs of its own.
        origins: The operators that compute the reference's outputs, and the tensors that these read.
    """

    reference: str
    computes: str
    digest: str
    origins: Origins = Origins()


class PackageChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime selects from: one component of a package.

    Attributes:
        root: The package's folder.
        variants: Each as the agent gets it: name, ep, device, compatibility, model, options, entries.
        computes: Variant -> the precision that it computes in, of those that can be read.
    """

    root: str
    component: str
    variants: tuple[dict[str, Any], ...]
    computes: dict[str, str]

    def job(self) -> dict[str, Any]:
        """Return it in the agent's format."""
        return {"root": self.root, "component": self.component, "variants": list(self.variants)}
