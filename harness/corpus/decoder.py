"""A decoder's inputs and outputs by their roles: tokens, positions, mask, cache, logits."""

import msgspec


class CachePair(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor of the cache: an input, and the output that takes its place in the next step.

    Attributes:
        past: Name of the input.
        present: Name of the output.
        axis: The axis of the positions, in both.
    """

    past: str
    present: str
    axis: int


class Decoder(msgspec.Struct, frozen=True, kw_only=True):
    """The roles of a decoder's inputs and outputs.

    Attributes:
        tokens: Name of the input of token ids, int32 or int64, of shape (batch, sequence).
        logits: Name of the output, of shape (batch, sequence, vocabulary).
        cache: The cache, in the order of the layers; empty for a model without one.
        positions: Name of the input of position ids, of shape (batch, sequence); empty if there is none.
        mask: Name of the attention mask, of shape (batch, past + sequence), 1 for a token that counts; empty
            if there is none.
        vocabulary: Token ids are below it.
        context: Most positions that the model can hold; None if it does not say.
        fixed: Inputs that stay the same in all steps, such as the cross-attention cache of an encoder.
        shares_buffer: Whether past and present may be one buffer of ``context`` positions, as operators with
            ``GroupQueryAttention``'s definition allow.
        pads_token: The token id of padding.
    """

    tokens: str
    logits: str
    cache: tuple[CachePair, ...] = ()
    positions: str = ""
    mask: str = ""
    vocabulary: int
    context: int | None = None
    fixed: tuple[str, ...] = ()
    shares_buffer: bool = False
    pads_token: int = 0
