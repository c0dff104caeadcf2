"""`python -m winboot`."""

from winboot.cli import main

if __name__ == "__main__":
    main()
