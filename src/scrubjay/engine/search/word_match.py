"""Which texts hold every word of a query: plain, complete, and no matter of rank.

For verbs that must not miss anything, such as forgetting by what was said.
"""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.engine.search.analysis import recognize, terms, words
from scrubjay.engine.search.stopwords import STOP_WORDS


def holds(query: str) -> Callable[[str], bool]:
    """A test for texts that hold every word of the query, in any of its forms.

    Words that say nothing by themselves are not asked for, unless the query has no other.
    """
    asked = words(query)
    stops = STOP_WORDS.get(recognize(asked), ())
    kept = [word for word in asked if word not in stops] or asked

    def test(text: str) -> bool:
        language = recognize(words(text))
        held = set(terms(text, language))
        return bool(kept) and all(held.issuperset(terms(word, language)) for word in kept)

    return test


def gist(text: str) -> frozenset[str]:
    """The terms of a text without the words that say nothing by themselves."""
    found = words(text)
    language = recognize(found)
    stops = STOP_WORDS.get(language, ())
    return frozenset(term for word in found if word not in stops for term in terms(word, language))
