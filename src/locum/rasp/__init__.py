"""Write RASP programs as Python objects (module ``python``) or as text (:class:`Session`), and draw
them.
"""

from locum.public_names import attach

__getattr__, __dir__, __all__ = attach(__name__)
del attach
