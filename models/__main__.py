"""`python -m models`."""

from models.process import keep_freed_memory, wait_passively

if __name__ == "__main__":
    wait_passively()  # before anything imports torch
    keep_freed_memory()
    from models.commands import main

    main()
