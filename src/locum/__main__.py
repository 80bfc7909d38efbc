"""Start the command-line interface for ``locum`` and ``python -m locum``."""

from locum.interface.cli.main import main

if __name__ == "__main__":
    main()
