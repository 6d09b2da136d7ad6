"""What a report shows of a run's templates."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.corpus import Corpus, spread
from models.data.tables import format_table
from models.generation.instances import instances
from models.generation.templates import UnderTemplate, write_differently
from models.generation.writer import Request, Writer
from models.report.content import Browser, Coloured, NGram, Output, StateWords, TableChoice
from models.runs import TrainedRun
from models.template_analysis import TemplateAnalysis
from models.template_bank import TemplateBank
from models.templates import map_templates

SENTENCES = 12
TABLES, TEMPLATES = 8, 6  # to choose from, and sentences for each table


def coloured_sentences(trained: TrainedRun, corpus: Corpus) -> tuple[Coloured, ...]:
    """Of the dev set, with their most likely states."""
    examples = spread(corpus.splits["dev"], SENTENCES)
    templates = map_templates(trained.model, examples, trained.vocabulary.words)
    pairs = zip(examples, templates, strict=True)
    return tuple(Coloured(example.words, tuple(states)) for example, states in pairs)


def browser(trained: TrainedRun, corpus: Corpus, bank: TemplateBank) -> Browser:
    """Sources of the dev set, each under several templates."""
    writer = Writer(trained)
    requests = [i.request for i in spread(instances(writer, corpus.splits["dev"]), TABLES)]
    answers = [write_differently(writer, bank, request, TEMPLATES) for request in requests]
    stored = {each.template.number: each.template for answer in answers for each in answer}
    places = {number: place for place, number in enumerate(stored)}
    return Browser(
        tuple(template.states for template in stored.values()),
        tuple(_choice(r, a, places) for r, a in zip(requests, answers, strict=True)),
    )


def ngrams(analysis: TemplateAnalysis) -> tuple[NGram, ...]:
    longer = [ngram for ngram in analysis.ngrams if len(ngram.states) > 1]
    return tuple(NGram(ngram.states, ngram.count, ngram.segments) for ngram in longer)


def state_words(analysis: TemplateAnalysis) -> tuple[StateWords, ...]:
    return tuple(
        StateWords(entry.state, entry.share, tuple((word.word, word.share) for word in entry.words))
        for entry in analysis.states
    )


def _choice(
    request: Request, answer: Sequence[UnderTemplate], places: dict[int, int]
) -> TableChoice:
    label = format_table(request.table) if request.table else request.sentence
    outputs = [_output(each, places[each.template.number]) for each in answer]
    return TableChoice(label, tuple(outputs))


def _output(each: UnderTemplate, place: int) -> Output:
    sentence = each.sentence
    note = f"template @{each.template.number}; log p per word {sentence.log_prob_per_word:.2f}"
    return Output(place, sentence.text, Coloured(sentence.words, sentence.states), note)
