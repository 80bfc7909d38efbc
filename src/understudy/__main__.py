"""``python -m understudy`` is the command line."""

from understudy.cli.main import main

main()
