"""Known hard cases of linear chains, asked of every library that is installed."""
