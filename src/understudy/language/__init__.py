"""Front ends: whatever a person writes becomes the one graph.

``python`` has s-ops as Python objects; :class:`Session` reads RASP text.
"""
