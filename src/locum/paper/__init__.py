"""The paper: its items, errata, listings and figures, each with the function that makes it real."""
