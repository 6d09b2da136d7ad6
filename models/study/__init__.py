"""Studies: many runs from one file, trained and evaluated side by side, and compared."""
