"""The paraphrase protocol: iBLEU, self-BLEU and ROUGE."""

from __future__ import annotations

import pytest

from models.metrics.mteval import token_bleu
from models.metrics.paraphrase import rouge, score_paraphrase

OUTPUTS = ["a man rides a brown horse", "two dogs play in the snow", "a plate of food"]
INPUTS = ["a man on a brown horse", "two dogs run in snow", "a plate of food"]
REFERENCES = [
    ["a man rides a brown horse", "someone is riding"],
    ["dogs playing in the snow"],
    ["food on a plate", "a plate with some food"],
]


def values():
    return {
        score.name: score.value for score in score_paraphrase(OUTPUTS, REFERENCES, INPUTS).scores
    }


def test_ibleu_subtracts_what_was_copied():
    found = values()
    against_inputs = token_bleu(OUTPUTS, [[text] for text in INPUTS]).value
    assert found["self-BLEU"] == pytest.approx(against_inputs)
    assert found["iBLEU"] == pytest.approx(0.9 * found["BLEU-4"] - 0.1 * against_inputs)


def test_bleu_of_three_orders():
    found = values()
    assert found["BLEU-2"] == pytest.approx(token_bleu(OUTPUTS, REFERENCES, 2).value)
    assert found["BLEU-2"] > found["BLEU-3"] > found["BLEU-4"] > 0


def test_copies_of_the_input():
    scores = score_paraphrase(INPUTS, REFERENCES, INPUTS)
    assert scores["self-BLEU"].value == pytest.approx(1)


def test_rouge_by_hand():
    found = rouge(["dogs played in snow"], [["a dog plays in the snow"]])
    assert found["ROUGE-1"] == pytest.approx(2 * (4 / 4) * (4 / 6) / (4 / 4 + 4 / 6))  # stemmed
    assert found["ROUGE-2"] == pytest.approx(2 * (2 / 3) * (2 / 5) / (2 / 3 + 2 / 5))
    assert found["ROUGE-L"] == pytest.approx(found["ROUGE-1"])


def test_rouge_takes_the_best_reference_and_the_mean_over_instances():
    found = rouge(["a b", "x"], [["c", "a b"], ["y"]])
    assert found == {"ROUGE-1": 0.5, "ROUGE-2": 0.5, "ROUGE-L": 0.5}


def test_a_single_output_has_no_others():
    score = score_paraphrase(["a b"], [["a b"]], ["a c"])["mutual-BLEU"]
    assert score.value is None
    assert score.unavailable == "there is only one output"


def test_settings_are_reported():
    report = score_paraphrase(OUTPUTS, REFERENCES, INPUTS).as_json()
    assert report["instances"] == 3
    assert report["references"] == 5
    assert report["scores"]["iBLEU"]["settings"]["alpha"] == 0.9
    assert "smooth:none" in report["scores"]["BLEU-2"]["settings"]["signature"]
    assert "not comparable" in report["scores"]["ROUGE-1"]["settings"]["value"]
