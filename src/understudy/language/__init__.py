"""Front ends: whatever a person writes becomes the one graph."""
