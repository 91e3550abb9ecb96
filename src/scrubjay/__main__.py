"""`python -m scrubjay` is the command line."""

from scrubjay.cli import main

if __name__ == "__main__":
    main()
