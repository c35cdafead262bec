"""Entry point of the `morimon` command."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; exits the process."""
    try:
        from morimon.cli.main import cli

        cli()
    except KeyboardInterrupt:  # before click listens
        sys.exit(130)


if __name__ == "__main__":
    main()
