"""The command as a module: `python -m coview` is `coview`."""

from coview.cli import main

if __name__ == "__main__":
    main()
