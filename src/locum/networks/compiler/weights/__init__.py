"""The numbers: slots of the residual stream, matrices, and what comes out."""

from locum.networks.compiler.weights.assemble import assemble
from locum.networks.compiler.weights.network_size import require_short, require_small
from locum.networks.compiler.weights.stream import categories, require_held

__all__ = ["assemble", "categories", "require_held", "require_short", "require_small"]
