"""Build the documentation site: ``python -m docs.site`` (``make docs``) writes it to build/docs.

The site contains the pages of docs/, generated pages (items of the paper, API, commands, limits), and the
notebooks with their outputs. ``contents.py`` defines the order of the pages.
"""
