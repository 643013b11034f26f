"""Start the command line, as `cmdplab` or `python -m cmdplab`."""

import sys


def main() -> None:
    """Run the command line; a Ctrl-C before a command begins ends it in silence."""
    try:
        from cmdplab import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
