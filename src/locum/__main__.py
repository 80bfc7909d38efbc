"""``locum`` and ``python -m locum``: the command line, which is imported here and not before.

An interrupt while it is still being imported is one line and an exit code, like any other.
"""

import signal
import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
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
        if leaving.code == INTERRUPTED:  # a second Ctrl-C changes nothing any more
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise


if __name__ == "__main__":
    main()
