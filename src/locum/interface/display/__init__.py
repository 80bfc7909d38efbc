"""Draw charts and automata as SVG, and write HTML pages about networks, models, hypotheses and the
paper.
"""
