"""Heads and feed-forwards without numbers: roles of s-ops, schedule, lowering."""
