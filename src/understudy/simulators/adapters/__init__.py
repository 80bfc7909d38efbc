"""Trained layers and models as T's.

``torch_layers.py`` reads torch's own layers, ``checkpoint.py`` folders of the BERT family, ``forms.py``
plain arrays; ``model.py`` is a whole encoder made of such layers, and ``direct.py`` its own forward pass, to
compare with.
"""
