"""`python -m models`."""

from models.commands import main

if __name__ == "__main__":
    main()
