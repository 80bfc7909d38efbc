"""The paper's constructions. So far: its listings, verbatim, beside corrected ones (``listings/``)."""
