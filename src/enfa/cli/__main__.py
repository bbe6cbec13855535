"""``python -m enfa.cli``: the same as ``enfa``, where the script is not installed."""

from enfa.cli import main

if __name__ == "__main__":
    main()
