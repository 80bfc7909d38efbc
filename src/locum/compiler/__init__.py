"""From RASP to the weights of a transformer.

``compiling.py`` calls the stages in their order. Its modules, from the ground up; each imports only
from lines above its own, or from before it on its line:

- what is asked for: ``target``;
- what a program says: ``normalise``; ``columns``, ``values``, ``codes`` (which values there are, and as
  which numbers); ``conditions``, ``patterns`` (which keys are selected);
- selectors as scores: ``linear``, ``features``, ``classes``, ``scores``, ``selectors``; what has none:
  ``candidates``, ``broadcasting``;
- the network without weights: ``forms``, ``gates``, ``network``;
- what an s-op is to it: ``roles``; for units of one kind ``tables``, ``reals``, ``gate_roles``;
- when and how: ``schedule``, ``embedding``, ``heads``, ``lowering``;
- gates as units: ``curves``, ``hidden``, ``products``, ``realise``;
- how exact it is: ``demand``, ``spreads``, ``gate_bounds``, ``head_bounds``, ``bounds``, ``fitting``;
- the weights: ``slots``, ``stream``, ``exact`` and ``units`` (feed-forwards), ``assemble``,
  ``outputs``;
- all of it: ``reports``, ``compiling``.
"""

from locum.compiler.compiling import compile  # noqa: A004  (locum.compile)

__all__ = ["compile"]
