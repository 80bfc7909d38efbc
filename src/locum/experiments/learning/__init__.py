"""Can constructions be learned? Trainings of compiled networks, many at a time (docs/learning.md).

It needs torch; ``locum sweep sweeps/learning.toml`` runs what the page is made of.
"""
