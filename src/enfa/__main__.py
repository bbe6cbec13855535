"""``python -m enfa``, where the command itself is not on the path."""

from enfa.cli import main

if __name__ == "__main__":
    main()
