"""The tokeniser in Python gives what the Stanford tokeniser gives."""

from __future__ import annotations

import pytest

from models.metrics.coco import python_ptb_tokens, stanford_ptb_tokens
from models.metrics.text_files import read_references

CASES = {
    "It's a pub, near Café Rouge.": "it 's a pub near café rouge",
    "They don't cater for kids; you can't.": "they do n't cater for kids you ca n't",
    "Price: £20-25, or £20-£25!": "price # 20-25 or # 20 # 25",
    "More than £30.It's family-friendly": "more than # 30 it 's family-friendly",
    "A non- family place, .Blue Spice": "a non family place blue spice",
    'Called "Cotto", or \u201cCotto\u201d.': "called cotto or cotto",
    "The pub 'The Mill'. It\u2019s near 'Ranch'.": "the pub the mill it 's near ranch",
    "In the city center., near it..": "in the city center. near it",
    "The U.K. has 1,000 (or 3.5) pubs...": "the u.k. has 1,000 -lrb- or 3.5 -rrb- pubs",
    "I cannot, at 5/5 and 10%, & more": "i can not at 5/5 and 10 % & more",
    "two\u00a0words\tand\u2028more": "two words and more",
    "?": "",
}


@pytest.mark.parametrize(("text", "tokens"), CASES.items())
def test_python(text, tokens):
    assert python_ptb_tokens([text]) == [tokens]


@pytest.mark.usefixtures("java")
def test_stanford_agrees():
    assert stanford_ptb_tokens(list(CASES)) == list(CASES.values())


def test_agreement_on_the_official_references(outputs_directory, official_references):
    official = read_references(outputs_directory / "testset_refs.ptb.txt.gz")
    expected = [text for instance in official for text in instance.texts]
    found = python_ptb_tokens([text for texts in official_references for text in texts])
    assert len(found) == len(expected) == 4693
    assert sum(a == b for a, b in zip(found, expected, strict=True)) == 4693
