"""`python -m benchmarks`."""

from models.process import wait_passively

if __name__ == "__main__":
    wait_passively()  # before anything imports torch
    from benchmarks.commands import app

    app(prog_name="python -m benchmarks")
