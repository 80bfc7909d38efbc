"""Stand-ins: nn.Modules that compute by U, and attention for models of the transformers library.

``replacing.py`` is ``locum.stand_in``, ``modules.py`` has the stand-ins for torch's own layers,
``interface.py`` is ``attn_implementation="locum"``, ``running.py`` where U meets torch's tracers.
"""
