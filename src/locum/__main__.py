"""Start the command-line interface for ``locum`` and ``python -m locum``.

The command-line interface is imported in :func:`main`. An interrupt during this import is therefore
also reported in one line, with an exit code.
"""

import signal
import sys


def main() -> None:
    """Run the command-line interface and exit with its exit code."""
    try:
        from locum.interface.cli.main import interrupt_again
        from locum.interface.cli.main import main as run
        from locum.interface.cli.runner import INTERRUPTED
    except KeyboardInterrupt:
        sys.stderr.write("locum: interrupted\n")
        sys.exit(130)
    sys.unraisablehook = interrupt_again
    try:
        run()
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:  # ignore a second Ctrl-C
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise


if __name__ == "__main__":
    main()
