"""What is known of a program: its normal form, the values of its s-ops, their codes."""
