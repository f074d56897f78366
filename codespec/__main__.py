"""`python -m codespec`."""

from codespec.cli import main

if __name__ == "__main__":
    main()
