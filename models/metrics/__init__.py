"""The official metrics of data-to-text and paraphrasing, and measures of diversity and control.

`models.metrics.e2e.score_e2e` and `models.metrics.paraphrase.score_paraphrase` give all scores of a
system. The libraries behind them are the extra `metrics`; they are imported when a score is made.
"""
