"""Experiments: what is measured for a page of the documents, with seeds and commands."""
