"""The built-in corpus: a grammar of sentences about restaurants, and what its sentences say."""
