"""`python -m models`."""

from models.idle_threads import wait_passively

if __name__ == "__main__":
    wait_passively()  # before anything imports torch
    from models.commands import main

    main()
