"""``python -m locum`` is the command line."""

from locum.cli.main import main

main()
