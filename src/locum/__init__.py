"""Run RASP programs, simulate attention with one universal program, compile RASP to transformer
weights, and prove claims.

>>> import locum
>>> locum.selector_width(locum.select(locum.tokens, locum.tokens, "=="))("hello")
[1, 1, 2, 2, 1]
"""

from locum.public_names import attach

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = attach(__name__)
del attach
