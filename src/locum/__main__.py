"""``locum`` and ``python -m locum``: the command line, which is imported here and not before.

An interrupt while it is still being imported is one line and an exit code, like any other.
"""

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    try:
        from locum.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("locum: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
