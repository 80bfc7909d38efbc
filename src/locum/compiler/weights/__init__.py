"""The numbers: slots of the residual stream, weight matrices, outputs."""
