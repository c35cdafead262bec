"""Entry point of the `morimon` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; exits the process."""
    from morimon.cli.main import cli

    cli()


if __name__ == "__main__":
    main()
