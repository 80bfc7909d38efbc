"""What U computes: the attention head, the layer, the inverse form, width one."""
