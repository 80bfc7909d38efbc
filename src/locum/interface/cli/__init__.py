"""Define the commands of ``locum``: a module for each command, and modules that commands share."""
