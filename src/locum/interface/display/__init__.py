"""Draw charts and automata as SVG, and write HTML pages about programs, networks, models and proofs."""
