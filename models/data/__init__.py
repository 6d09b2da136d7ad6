"""Corpora as words and numbers: readers, vocabularies, sources and batches."""
