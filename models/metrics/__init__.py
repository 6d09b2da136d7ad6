"""The official metrics of data-to-text and paraphrasing, and measures of diversity and control.

The libraries behind them are the extra `metrics`; they are imported when a score is computed.
"""

from models.metrics.bleu import Bleu, e2e_bleu, token_bleu
from models.metrics.coco import cider, meteor, rouge_l
from models.metrics.control import template_adherence, templates_used
from models.metrics.diversity import distinct_n, mutual_bleu
from models.metrics.e2e import score_e2e
from models.metrics.extra import MissingLibraryError
from models.metrics.java import JavaUnavailableError
from models.metrics.nist import e2e_nist, token_nist, tokenise_13a
from models.metrics.paraphrase import ibleu, score_paraphrase
from models.metrics.ptb import python_ptb_tokens, stanford_ptb_tokens
from models.metrics.report import Report, Score
from models.metrics.rouge import rouge
from models.metrics.slot_errors import SlotErrors, corpus_slot_errors, slot_errors
from models.metrics.text_files import read_references, read_texts

__all__ = [
    "Bleu",
    "JavaUnavailableError",
    "MissingLibraryError",
    "Report",
    "Score",
    "SlotErrors",
    "cider",
    "corpus_slot_errors",
    "distinct_n",
    "e2e_bleu",
    "e2e_nist",
    "ibleu",
    "meteor",
    "mutual_bleu",
    "python_ptb_tokens",
    "read_references",
    "read_texts",
    "rouge",
    "rouge_l",
    "score_e2e",
    "score_paraphrase",
    "slot_errors",
    "stanford_ptb_tokens",
    "template_adherence",
    "templates_used",
    "token_bleu",
    "token_nist",
    "tokenise_13a",
]
