"""Named entities over spans: a linear chain of tags beside semi-Markov chains of segments."""
