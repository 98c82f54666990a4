"""`python -m harness`."""

from harness.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
