"""Describe compiled transformers as text, in the terminal and as HTML pages."""
