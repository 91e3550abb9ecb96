"""Every error scrubjay raises on purpose, as one tree.

ScrubjayError
├── InvalidRequest        the request cannot be carried out as it was written
│   └── WrongKey          the key or passphrase given does not open the file
├── NotFound              no such memory, session, scope or file
├── Forbidden             this credential or origin may not do that
├── LimitReached          a budget or a size limit is used up
├── Frozen                the scope is frozen for this verb
│   └── Restricted        it is frozen whole: processing is restricted (Art. 18 GDPR)
├── NeedsConfirmation     a destructive verb was not confirmed
├── Conflict              another writer changed it first
│   └── Stale             optimistic lock: the memory has changed since it was read
├── Destroyed             the scope was destroyed; nothing of it is left
├── StoreError            the store failed
│   ├── Busy              another writer held the lock too long
│   ├── Full              no space left to write
│   ├── Damaged           a file is not what was written
│   ├── KeyUnavailable    the root key cannot be reached just now
│   ├── OutcomeUnknown    the answer to a commit was lost
│   └── SchemaTooNew      written by a newer scrubjay
├── EmbedderError         the embedder failed
│   ├── Timeout           it did not answer within the deadline
│   └── Changed           it is another embedder than the one that made the vectors
├── ExtractorError        the model that reads turns is unavailable
├── SealBroken            a cell does not decrypt: altered, moved or cut short
├── KeyMissing            the key slot is not in the keyring
└── Locked                the keyring is locked
    └── UserLocked        the user of this scope has locked it

The message is one clear sentence without content; the hint says what to do next.
"""

from __future__ import annotations


class ScrubjayError(Exception):
    """Base class of all errors that scrubjay raises on purpose."""

    code = "error"
    default_hint = "Read the message; `scrubjay doctor` checks the installation."

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
        self.add_note(self.hint)  # a traceback shows it

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.hint), self.__dict__)


def _rebuild(kind: type[ScrubjayError], message: str, hint: str) -> ScrubjayError:
    return kind(message, hint=hint)


class InvalidRequest(ScrubjayError):
    """The request cannot be carried out as it was written."""

    code = "invalid_request"
    default_hint = "Correct the request and send it again."


class WrongKey(InvalidRequest):
    """No key or passphrase was given for a sealed file, or one that does not open it."""

    code = "wrong_key"
    default_hint = "Nothing was loaded. Give the key or the passphrase the file was made with."


class NotFound(ScrubjayError):
    """No such memory, turn, session, scope or file."""

    code = "not_found"
    default_hint = "Check the id; browse lists the memories of the scope."


class Forbidden(ScrubjayError):
    """The credential or the origin may not do that."""

    code = "forbidden"
    default_hint = "Use a credential or an origin that is allowed to do this."


class LimitReached(ScrubjayError):
    """A budget or a size limit is used up."""

    code = "limit_reached"
    default_hint = "Send less, or raise the limit."


class Frozen(ScrubjayError):
    """The scope is frozen for this verb."""

    code = "frozen"
    default_hint = "Unfreeze the scope first; forget, destroy and export work while it is frozen."


class Restricted(Frozen):
    """Processing of the scope is restricted: it is only stored (Art. 18 GDPR)."""

    code = "restricted"
    default_hint = "Its owner can look at it, export, forget and destroy it, or lift this."


class NeedsConfirmation(ScrubjayError):
    """A destructive verb was not confirmed."""

    code = "needs_confirmation"
    default_hint = "Repeat the call with the confirmation it asks for."


class Conflict(ScrubjayError):
    """Another writer changed it first."""

    code = "conflict"
    default_hint = "Read it again, then repeat the change if it still applies."


class Stale(Conflict):
    """Optimistic lock: the memory has changed since it was read."""

    code = "stale"


class Destroyed(ScrubjayError):
    """The scope was destroyed; nothing of it is left."""

    code = "destroyed"
    default_hint = "Open it with anew=True to start an empty scope of the same name."


class StoreError(ScrubjayError):
    """The store failed."""

    code = "store_error"
    default_hint = "Run verify; acknowledged writes are not affected."


class Busy(StoreError):
    """Another writer held the lock too long."""

    code = "store_busy"
    default_hint = "Try again; if it persists, look for a stuck process that uses this home."


class Full(StoreError):
    """No space is left to write."""

    code = "store_full"
    default_hint = "Free disk space: reads and forget still work, writes resume by themselves."


class Damaged(StoreError):
    """A file of the store is not what was written."""

    code = "store_damaged"
    default_hint = "Run verify to see what is affected; restore it from a backup."


class KeyUnavailable(StoreError):
    """The root key exists, but what holds it does not answer or refuses."""

    code = "key_unavailable"
    default_hint = "Try again; if it persists, ask whoever runs the key service. Nothing is lost."


class OutcomeUnknown(StoreError):
    """The answer to a commit was lost: it may have happened or not."""

    code = "outcome_unknown"
    default_hint = "Repeat it under the same idempotency key or id, or look before repeating it."

    def __init__(self, message: str, *, hint: str | None = None, commit: str = "") -> None:
        super().__init__(message, hint=hint)
        self.commit = commit
        """The name under which `Store.resolve` knows the commit."""


class SchemaTooNew(StoreError):
    """The file was written by a newer scrubjay."""

    code = "schema_too_new"
    default_hint = "Upgrade scrubjay; this version does not touch the file."


class EmbedderError(ScrubjayError):
    """The embedder failed."""

    code = "embedder_error"
    default_hint = "Recall uses words only until the embedder answers again."


class Timeout(EmbedderError):
    """The embedder did not answer within the deadline."""

    code = "embedder_timeout"


class Changed(EmbedderError):
    """The embedder is another one than the one that made the stored vectors."""

    code = "embedder_changed"
    default_hint = "Run reindex, or configure the embedder that was used before."


class ExtractorError(ScrubjayError):
    """The model that reads turns is unavailable: it is down, refuses, or is too slow."""

    code = "extractor_error"
    default_hint = "Check its URL, API key and model name; the turns wait, nothing is lost."


class SealBroken(ScrubjayError):
    """A cell does not decrypt: it was altered, moved or cut short, or the key is wrong."""

    code = "seal_broken"
    default_hint = "Run verify to see what is damaged; restore it from a backup."


class KeyMissing(ScrubjayError):
    """The key slot is not in the keyring."""

    code = "key_missing"
    default_hint = "Check that the keys folder belongs to this data folder and is complete."


class Locked(ScrubjayError):
    """The keyring is locked."""

    code = "locked"
    default_hint = "Unlock it with the passphrase or the recovery key."


class UserLocked(Locked):
    """The user of this scope holds a half of its keys, and has locked it."""

    code = "user_locked"
    default_hint = "Its user unlocks it; until then what is written waits in its inbox, sealed."
