"""Define the commands of ``locum``, with one module for each command."""
