"""The command line, the playground, and the figures and pages that they show."""
