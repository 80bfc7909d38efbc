"""Build the documentation site: ``python -m docs.site`` (``make docs``) writes it to build/docs/html.

The site contains a home page, the README, CONTRIBUTING and CHANGELOG, the pages of docs/, and the
notebooks with their outputs. It also contains generated pages, such as the API and the commands.
``contents.py`` defines the order of the pages.
"""
