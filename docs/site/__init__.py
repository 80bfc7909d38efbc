"""The documentation as a site: ``python -m docs.site`` (``make docs``) builds it into build/docs.

The pages of docs/ are taken as they are; pages of recipes, of the API and of what else is listed in the
code are generated; notebooks are run. ``contents.py`` says which page stands where.
"""
