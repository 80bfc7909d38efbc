"""How exact the network is: errors carried from the embedding to the output."""

from locum.networks.compiler.bounds.fitting import Fitted, fit

__all__ = ["Fitted", "fit"]
