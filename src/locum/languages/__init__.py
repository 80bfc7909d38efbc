"""The languages that people write transformers in, on the one graph: C-RASP, B-RASP, LTL, RASP-L."""
