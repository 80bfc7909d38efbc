"""Define the order of a module T: the sizes and kinds from which U is built, without the values of T.

The paper's order is (n, d, d_v), with d₁ and d₂ for a feed-forward. In Locum, the order also includes
heads, biases, masks, norms and the kind of attention. All modules T of the same order run on the same
U.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Self

from locum.errors import GraphError
from locum.execution.array_activations import ACTIVATIONS
from locum.settings import Setting, normalise_settings, require_choice, require_known
from locum.simulators.attention_order import KINDS, AttentionOrder
from locum.simulators.token_layout import Block

NORMS = ("none", "post", "pre")


def _pair(sizes: Any) -> tuple[int, int]:
    d1, d2 = (_SIZE.normalise(size) for size in sizes)
    return d1, d2


_SIZE = Setting("an integer", least=1)


@dataclass(frozen=True)
class Order:
    """The order of a module T on n rows, where T is an attention layer, an encoder layer or a decoder
    layer.

    >>> from locum import UniversalSimulator
    >>> from locum.simulators import Order
    >>> UniversalSimulator(Order.of(4, 3, 2, heads=2, mask="causal")).architecture.layers
    6
    """

    n: Annotated[int, _SIZE]
    attention: AttentionOrder
    #: Number of rows of the memory that a cross-attention or a decoder attends to; 0 without memory.
    memory: Annotated[int, Setting("an integer", least=0)] = 0
    #: The cross-attention of a decoder layer. If it is None and the order has a memory, ``attention``
    #: itself attends to the memory.
    cross: AttentionOrder | None = None
    residual: bool = False
    feed_forward: Annotated[
        tuple[int, int] | None, Setting("(d1, d2), two integers ≥ 1", convert=_pair)
    ] = None
    feed_forward_bias: bool = False
    feed_forward_residual: bool = False
    activation: Annotated[str, Setting("a text", choices=tuple(ACTIVATIONS))] = "relu"
    norm: Annotated[str, Setting("a text", choices=NORMS)] = "none"
    #: Whether norms have gains and biases (RMSNorm: only gains).
    affine: bool = False
    #: Number of X's (each with a separate memory and mask) in one run, all with the same T.
    batch: Annotated[int, _SIZE] = 1
    #: Whether norms are RMSNorm, which has no bias.
    rms: bool = False
    #: Whether the feed-forward has a gate W_gate.
    gated: bool = False
    #: Whether attention and feed-forward both read X, each after a separate norm, and are added to X.
    parallel: bool = False

    def __post_init__(self) -> None:
        normalise_settings(self, GraphError)
        d, columns = self.attention.d, self.attention.columns
        if self.attention.mask == "causal" and self.memory and self.cross is None:
            raise GraphError("attention to a memory does not support a causal mask")
        if self.attention.d_keys not in (0, d) and (not self.memory or self.cross is not None):
            raise GraphError(
                f"A must be square where X attends to itself, but it is {d}×{self.attention.d_keys}"
            )
        if self.norm != "none" and not self.residual:
            raise GraphError("norms require a residual sum; try residual=True")
        if self.residual and columns != d:
            raise GraphError(
                f"X + attention(X) needs as many columns on both sides (erratum E19), but X has {d} "
                f"and the attention gives {columns}: let d_v be {d}, or project by W_O to {d} columns"
            )
        if self.residual and self.memory and self.cross is None:
            raise GraphError(
                "a layer that attends to a memory is a decoder layer, with two attentions: "
                "UniversalSimulator.of(DecoderLayer(…), n, memory) makes its U"
            )
        if self.feed_forward is not None:
            if not self.residual:
                raise GraphError("a feed-forward requires a residual sum; try residual=True")
            _, d2 = self.feed_forward
            if self.feed_forward_residual and d2 != d:
                raise GraphError(f"expected d2 = {d} for a residual around the feed-forward, got {d2}")
        if self.parallel and (
            self.norm != "pre" or self.cross is not None or not self.feed_forward_residual
        ):
            raise GraphError("a parallel layer has a norm before, and a residual around, its two parts")
        if self.gated and self.feed_forward is None:
            raise GraphError("gated hidden units require a feed-forward, but there is none")
        if self.feed_forward_bias and self.feed_forward is None:
            raise GraphError("feed_forward_bias requires a feed-forward, but there is none")
        if self.affine and self.norm == "none":
            raise GraphError("affine requires norms, but there are none")

    @classmethod
    def of(
        cls, n: int, d: int | None, d_v: int | None = None, *, kind: str = "softmax", **options: Any
    ) -> Self:
        """Return the order (n, d, d_v), or (n, d, d_v, d1, d2) with ``feed_forward=(d1, d2)``.

        ``options`` are the other fields of :class:`Order` and of :class:`AttentionOrder`.

        - ``d_v``: d by default.
        - ``residual``: whether T is an encoder layer, X + attention(X); true by default if the order
          includes a feed-forward or norms.
        - ``projection``: the number of columns of W_O, or 0 without W_O; d by default in an encoder
          layer with several concatenated heads.
        - ``bias``, ``output_bias``, ``feed_forward_bias``: whether T has biases in its projections,
          after W_O and in its feed-forward.
        - ``affine``: whether the norms have gains and biases.
        - ``memory``: the number of rows of the memory that X attends to instead of attending to itself,
          or that ``cross`` attends to.
        - ``batch``: the number of X's in one run.
        - ``width`` (columns of W_Q and W_K), ``rank`` (rows of E and F, features, or columns of φ),
          ``hidden`` (Sumformer) and ``feature_map`` (linear attention) apply only to some kinds of
          attention.

        >>> str(Order.of(4, 3, 2, heads=2))
        '(4, 3, 2), 2 heads'
        """
        mine = {field.name for field in fields(cls)} - {"n", "attention"}
        theirs = {field.name for field in fields(AttentionOrder)} - {"kind", "d", "d_v"}
        require_known(options, sorted(mine | theirs), "options of an order", GraphError)
        mask = options.get("mask")
        if mask is not None and not isinstance(mask, str):
            raise GraphError(
                'the mask itself belongs to T: expected mask="matrix" here, and the matrix in T'
            )
        require_choice(mask, (None, "causal", "matrix", "keys"), "mask", error=GraphError)
        require_choice(kind, KINDS, "kind", error=GraphError)
        if d is None:
            raise GraphError("expected the integers n and d (and d_v), got n alone")
        named = ((n, "n"), (d, "d"), (options.pop("heads", 1), "heads"))
        n, d, heads = (_SIZE.read(size, name, GraphError) for size, name in named)
        sizes = {name: options.pop(name, None) for name in ("width", "rank", "hidden")}
        around = {name: value for name, value in options.items() if name in mine}
        inside = {name: value for name, value in options.items() if name in theirs}
        has_norm, feeds = around.get("norm", "none") != "none", around.get("feed_forward") is not None
        if around.get("residual") is None:
            around["residual"] = feeds or has_norm
        if around.get("feed_forward_residual") is None:
            around["feed_forward_residual"] = feeds and has_norm
        if inside.get("projection") is None:
            joined = heads > 1 and inside.get("combine", "concatenate") == "concatenate"
            inside["projection"] = d if around["residual"] and joined else 0
        inside |= _sizes_of_kind(kind, n, d, sizes)
        attention = AttentionOrder(kind, d, d if d_v is None else d_v, heads, **inside)
        return cls(n, attention, **around)

    @property
    def columns(self) -> int:
        """Number of columns of T(X)."""
        return self.attention.columns if self.feed_forward is None else self.feed_forward[1]

    @property
    def normed(self) -> list[int]:
        """Number of columns that each norm normalises, in the order of the norms."""
        if self.norm == "none":
            return []
        widths = [self.attention.d] * (1 + (self.cross is not None))
        if self.feed_forward is not None:
            widths.append(self.columns if self.norm == "post" else self.attention.d)
        return widths

    @property
    def norm_parts(self) -> tuple[str, ...]:
        """Names of the parameters of each norm: gain and bias, only the gain (RMSNorm), or none."""
        if not self.affine:
            return ()
        return ("gain",) if self.rms else ("gain", "bias")

    def blocks(self) -> list[Block]:
        """Return all blocks of the token sequence, beginning with X.

        X is at the same positions as results, so that residual sums need no head.
        """
        d, n = self.attention.d, self.n
        reads_memory = self.memory and self.cross is None
        blocks = [Block("X", n, d, self.batch)]
        if self.memory:
            width = self.cross.d_keys if self.cross is not None else self.attention.d_keys
            blocks.append(Block("M", self.memory, width or d, self.batch))
        blocks += self.attention.blocks(n, self.memory if reads_memory else n, batch=self.batch)
        if self.cross is not None:
            blocks += self.cross.blocks(n, self.memory, "cross ", self.batch)
        if self.feed_forward is not None:
            d1, d2 = self.feed_forward
            blocks.append(Block("W1", self.attention.columns, d1))
            if self.feed_forward_bias:
                blocks.append(Block("b1", 1, d1))
            if self.gated:
                blocks.append(Block("W_gate", self.attention.columns, d1))
                if self.feed_forward_bias:
                    blocks.append(Block("b_gate", 1, d1))
            blocks.append(Block("W2", d1, d2))
            if self.feed_forward_bias:
                blocks.append(Block("b2", 1, d2))
        for number, columns in enumerate(self.normed, start=1):
            blocks += [Block(f"{name}{number}", 1, columns) for name in self.norm_parts]
        if self.norm != "none":
            blocks.append(Block("epsilon", 1, 1))
        return blocks

    def __str__(self) -> str:
        attention = self.attention
        paper: list[object] = [self.n, attention.d, attention.d_v, *(self.feed_forward or ())]
        more = [f"{attention.heads} heads"] if attention.heads > 1 else []
        if attention.kind != "softmax":
            more.append(attention.kind)
        if self.batch > 1:
            more.append(f"batches of {self.batch}")
        return ", ".join([f"({', '.join(map(str, paper))})", *more])

    def differences(self, other: Order) -> list[str]:
        """Return descriptions of how ``other`` differs from this order.

        For example, ``heads 2 instead of 1`` means that ``other`` has 2 heads.
        """
        mine, its = _fields(self), _fields(other)
        return [
            f"{name} {its.get(name)} instead of {mine.get(name)}"
            for name in dict.fromkeys([*mine, *its])
            if mine.get(name) != its.get(name)
        ]


def _sizes_of_kind(kind: str, n: int, d: int, sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """Return all sizes that a kind of attention has; raise an error if ``sizes`` contains any other
    size.
    """
    defaults = KINDS[kind].sizes(n, d)
    for name, value in sizes.items():
        if value is not None and name not in defaults:
            raise GraphError(f"{name}: expected none, as kind {kind} has no such size, got {value!r}")
    return {
        name: default if sizes[name] is None else _SIZE.read(sizes[name], name, GraphError)
        for name, default in defaults.items()
    }


def _fields(order: Order) -> dict[str, Any]:
    """Return all fields of an order by readable names, including the fields of its attentions."""
    named: dict[str, Any] = {}
    for name, value in asdict(order).items():
        if name == "attention":
            named |= value
        elif name == "cross":
            named |= {f"cross {key}": part for key, part in (value or {}).items()}
        else:
            named[name] = value
    return named
