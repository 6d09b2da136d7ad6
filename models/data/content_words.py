"""The words of a caption that say what is in the picture."""

from __future__ import annotations

from collections.abc import Sequence

ARTICLES = "a an the"
PRONOUNS = """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves this that these
    those who whom whose which what there here someone something anyone anything everyone everything
    nobody nothing somebody anybody everybody
"""
DETERMINERS = "some any each every either neither both all such same other others another no own"
PREPOSITIONS = """
    about above across after against along alongside amid amidst among amongst around as at atop
    before behind below beneath beside besides between beyond by despite down during except for from
    in inside into like near next of off on onto out outside over past per plus since through
    throughout to toward towards under underneath until till unto up upon via with within without
"""
CONJUNCTIONS = "and or but nor yet so if because although though while whilst whereas than unless"
AUXILIARIES = """
    am is are was were be been being has have had having do does did doing done can could may might
    must shall should will would ought cannot isn't aren't wasn't weren't hasn't haven't hadn't
    don't doesn't didn't can't couldn't shouldn't won't wouldn't i'm i've i'll i'd you're you've
    you'll we're we've we'll they're they've they'll he'll she'll it'll 's
"""
ADVERBS = "not when where why how then too very also just only really quite rather even ever"

KINDS = (ARTICLES, PRONOUNS, DETERMINERS, PREPOSITIONS, CONJUNCTIONS, AUXILIARIES, ADVERBS)
STOP_WORDS = frozenset(word for kind in KINDS for word in kind.split())


def content_words(words: Sequence[str], limit: int = 10) -> list[str]:
    """The first `limit` different content words, in the order of the sentence.

    Neither stop words nor punctuation count. A sentence of stop words alone keeps them, since a
    bag must say something.
    """
    spoken = [word for word in dict.fromkeys(words) if is_spoken(word)]
    return ([word for word in spoken if word not in STOP_WORDS] or spoken)[:limit]


def is_spoken(word: str) -> bool:
    """Whether it has a letter or a digit: punctuation has none."""
    return any(character.isalnum() for character in word)
