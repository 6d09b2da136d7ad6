"""From the words of a model to the text that a reader sees: values, articles, gaps, spaces."""
