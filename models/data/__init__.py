"""Corpora: readers, the built-in grammar, vocabularies and batches."""
