"""Define the commands of ``locum``: one module for each command, imported when it is called."""
