"""Describe compiled transformers as text, in the terminal and in the playground."""
