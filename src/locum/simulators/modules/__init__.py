"""Define the modules T that U simulates: attention layers of several kinds, encoder and decoder
layers.
"""
