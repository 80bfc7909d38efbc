"""Run experiments on networks: circuits with ground truth, training from constructions, sweeps."""
