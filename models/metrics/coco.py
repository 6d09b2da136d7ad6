"""ROUGE-L, CIDEr and METEOR, by pycocoevalcap, of Penn Treebank tokens (see `ptb`).

Outputs and references are strings of tokens with spaces between them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from models.metrics.libraries import (
    TIME_LIMIT,
    JavaUnavailableError,
    bundled_jar,
    find_java,
    last_line,
    metrics_extra,
)

METEOR_JAR = "meteor/meteor-1.5.jar"
SECONDS_PER_INSTANCE = 1.0  # that METEOR may take at most; it needs about a hundredth

Instances = dict[int, list[str]]


def rouge_l(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean F-score of the longest common subsequence, beta 1.2; a fraction."""
    with metrics_extra():
        from pycocoevalcap.rouge.rouge import Rouge
    return float(Rouge().compute_score(*_instances(outputs, references))[0])


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """CIDEr-D: tf-idf similarity of n-grams up to 4, from 0 to 10."""
    with metrics_extra():
        from pycocoevalcap.cider.cider import Cider
    if not any(text for texts in references for text in texts):
        return 0.0
    return float(Cider().compute_score(*_instances(outputs, references))[0])


def meteor(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR 1.5, English, normalised; a fraction. Raises `JavaUnavailableError`."""
    with metrics_extra():
        from pycocoevalcap.meteor.meteor import Meteor
    instances = _instances(outputs, references)
    find_java()
    bundled_jar(METEOR_JAR)
    try:
        scorer = Meteor()
    except OSError as error:
        raise JavaUnavailableError(f"java does not start: {error.strerror}") from error
    limit = TIME_LIMIT + SECONDS_PER_INSTANCE * len(outputs)
    watchdog = threading.Timer(limit, scorer.meteor_p.kill)
    watchdog.start()
    try:
        return float(scorer.compute_score(*instances)[0])
    except (OSError, ValueError) as error:  # the pipe is broken, or an answer is no number
        in_time = watchdog.is_alive()
        reason = _message(scorer) if in_time else f"no answer in {limit:g} s"
        raise JavaUnavailableError(f"METEOR failed: {reason}") from error
    finally:
        watchdog.cancel()
        _close(scorer)


def _instances(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[Instances, Instances]:
    """References and outputs by number."""
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs, but {len(references)} lists of references")
    return dict(enumerate(map(list, references))), {i: [text] for i, text in enumerate(outputs)}


def _message(scorer: Any) -> str:
    """What the process said on its way out."""
    scorer.meteor_p.kill()
    scorer.meteor_p.wait()
    os.set_blocking(scorer.meteor_p.stderr.fileno(), False)
    return last_line(scorer.meteor_p.stderr.read() or b"")


def _close(scorer: Any) -> None:
    """Ends the process. After an error its lock is still held, and its destructor would wait."""
    if scorer.lock.locked():
        scorer.lock.release()
    for pipe in (scorer.meteor_p.stdin, scorer.meteor_p.stdout, scorer.meteor_p.stderr):
        with suppress(BrokenPipeError):  # what was not written yet is lost
            pipe.close()
    scorer.meteor_p.kill()
    scorer.meteor_p.wait()
