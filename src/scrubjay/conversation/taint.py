"""Taint of sessions: what a model has read, so that what it writes is trusted no more than that.

Every surface that puts text before a model tells it here: the memories that a verb showed, and the
tools that bring text of strangers.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from scrubjay.model.errors import ScrubjayError
from scrubjay.model.memory import Memory
from scrubjay.model.origin import Origin, lowest
from scrubjay.model.pages import Page
from scrubjay.model.results import Brief, Preview, Recalled

_WEB: Final = frozenset(
    {
        *("web", "www", "http", "https", "url", "urls", "uri", "internet", "online", "html", "rss"),
        *("google", "bing", "duckduckgo", "ddg", "tavily", "exa", "brave", "serper", "serpapi"),
        *("searxng", "perplexity", "kagi", "firecrawl", "jina", "arxiv", "pubmed", "reddit"),
        *("hackernews", "wiki", "wikipedia", "playwright", "puppeteer", "selenium", "chrome"),
        *("chromium", "firefox", "screenshot", "rag", "retrieval", "visit", "goto"),
    }
)
"""Words of a tool's name that say by themselves that it brings text of strangers."""
_DEEDS: Final = ("fetch", "brows", "http", "scrap", "crawl", "curl", "wget", "download", "navigat")
"""The same, however the name is spelled."""
_READING: Final = frozenset(
    {
        *("read", "get", "open", "visit", "load", "view", "check", "list", "show", "extract"),
        *("pull", "receive", "find", "query", "lookup", "retrieve", "parse", "watch", "poll"),
        *("summarize", "summarise", "search", "history", "replies"),
    }
)
_STRANGERS: Final = frozenset(
    {
        *("page", "pages", "webpage", "website", "site", "sites", "link", "links", "news", "feed"),
        *("feeds", "article", "articles", "email", "emails", "mail", "mails", "gmail", "inbox"),
        *("mailbox", "outlook", "imap", "slack", "discord", "telegram", "whatsapp", "message"),
        *("messages", "chat", "chats", "twitter", "tweet", "tweets", "post", "posts", "comment"),
        *("comments", "review", "reviews", "issue", "issues", "ticket", "tickets", "github"),
        *("gitlab", "jira", "confluence", "notion", "sharepoint", "youtube", "linkedin"),
        *("facebook", "instagram", "mastodon", "attachment", "attachments", "transcript"),
        *("calendar", "event", "events", "invitation", "invitations", "pdf", "pr", "prs"),
        *("pull", "commit", "commits", "thread", "threads", "conversation", "conversations"),
        *("channel", "channels", "forum", "notification", "notifications", "sms", "voicemail"),
        *("document", "documents", "doc", "docs", "sheet", "sheets", "drive", "form", "forms"),
        *("zendesk", "intercom", "hubspot", "salesforce", "crm"),
    }
)
"""What strangers write, where a tool reads it: `send_email` brings nothing."""
_OWN: Final = frozenset(
    {
        *("file", "files", "code", "memory", "memories", "tool", "tools", "database", "db", "sql"),
        *("note", "notes", "contact", "contacts", "history", "log", "logs"),
    }
)
"""What a search may go through that is the user's own."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

log = logging.getLogger(__name__)


def reads_web(tool: str) -> bool:
    """Whether a tool by its name brings text of strangers: `web_search`, `fetchPage`, `read_email`.

    A name is a hint: what it does not say, its host has to.
    """
    words = {word.lower() for word in _WORDS.findall(tool)}
    if not _WEB.isdisjoint(words) or any(deed in tool.lower() for deed in _DEEDS):
        return True
    if not _READING.isdisjoint(words) and not _STRANGERS.isdisjoint(words):
        return True
    return any("search" in word for word in words) and _OWN.isdisjoint(words)


def shown(result: Any) -> Iterator[Memory]:
    """The memories that the result of a verb puts before a model."""
    match result:
        case Recalled():
            yield from (hit.memory for hit in result)
        case Page() | Brief():
            yield from (one for one in result if isinstance(one, Memory))
        case Preview():
            yield from result.memories
        case Memory():
            yield result


def tainting(memories: Iterable[Memory]) -> Origin | None:
    """What a session is tainted with that is shown these memories; None if all are trusted."""
    untrusted = [memory.origin for memory in memories if not memory.trusted]
    return lowest(untrusted) if untrusted else None


class SessionTaint:
    """Taints sessions as their models read; a taint that cannot be written now is not lost.

    `mark` writes one and returns the least trusted origin that a session has read so far, which is
    how a trusted one asks. Without it taints live as long as this object.
    """

    def __init__(self, mark: Callable[[str, Origin], Origin] | None = None) -> None:
        self._mark = mark
        self._read: dict[str, Origin] = {}
        """What is not written."""
        self._lock = threading.Lock()  # the tools of a run are called side by side

    def note(self, session: str | None, origin: Origin | None) -> None:
        """The session has read text of this origin. Never raises: `settle` does, before a write."""
        if session is None or origin is None or origin.trusted:
            return
        with self._lock:
            self._read[session] = lowest((origin, self._read.get(session, origin)))
        try:
            self.settle(session)
        except Exception as error:  # seam: who reads must not fail over what is noted about it
            code = getattr(error, "code", type(error).__name__)
            log.warning("taint.not_written", extra={"code": code})

    def settle(self, session: str | None) -> None:
        """Write what is not written yet about a session; ScrubjayError if that fails again."""
        if self._mark is None or session is None:
            return
        while (read := self._read.get(session)) is not None:
            self._mark(session, read)
            with self._lock:  # what was read meanwhile is not written yet
                if self._read.get(session) is read:
                    del self._read[session]

    def of(self, session: str | None) -> Origin | None:
        """The least trusted origin that a session has read; None if it is trusted."""
        if session is None:
            return None
        found = self._read.get(session, Origin.USER)
        if self._mark is not None:
            try:
                found = lowest((found, self._mark(session, found)))
            except ScrubjayError as error:
                # What cannot be read is not taken for clean.
                log.warning("taint.not_read", extra={"code": error.code})
                found = Origin.WEB
        return None if found.trusted else found
