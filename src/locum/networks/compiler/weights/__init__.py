"""Create the weights of a network: residual stream, matrices, outputs and circuit."""

from locum.networks.compiler.weights.assemble import assemble
from locum.networks.compiler.weights.network_size import require_short, require_small
from locum.networks.compiler.weights.stream import categories, require_held

__all__ = ["assemble", "categories", "require_held", "require_short", "require_small"]
