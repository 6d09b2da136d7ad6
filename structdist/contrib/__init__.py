"""What connects this package to others, each with a module of its own and none imported here."""
