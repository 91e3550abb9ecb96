-- scope 1 --
CREATE TABLE memory (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    born INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    expiry INTEGER,
    erased INTEGER NOT NULL,
    session BLOB,
    key BLOB,
    cell BLOB,
    vector BLOB,
    blob TEXT
) STRICT;
CREATE UNIQUE INDEX memory_key ON memory (key) WHERE key IS NOT NULL;
CREATE INDEX memory_session ON memory (session) WHERE session IS NOT NULL;
CREATE INDEX memory_expiry ON memory (expiry) WHERE expiry IS NOT NULL;

CREATE TABLE turn (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    born INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    expiry INTEGER,
    erased INTEGER NOT NULL,
    session BLOB,
    key BLOB,
    cell BLOB,
    vector BLOB,
    blob TEXT
) STRICT;
CREATE UNIQUE INDEX turn_key ON turn (key) WHERE key IS NOT NULL;
CREATE INDEX turn_session ON turn (session) WHERE session IS NOT NULL;
CREATE INDEX turn_expiry ON turn (expiry) WHERE expiry IS NOT NULL;

CREATE TABLE session (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    born INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    expiry INTEGER,
    erased INTEGER NOT NULL,
    session BLOB,
    key BLOB,
    cell BLOB,
    vector BLOB,
    blob TEXT
) STRICT;
CREATE UNIQUE INDEX session_key ON session (key) WHERE key IS NOT NULL;
CREATE INDEX session_session ON session (session) WHERE session IS NOT NULL;
CREATE INDEX session_expiry ON session (expiry) WHERE expiry IS NOT NULL;

CREATE TABLE tombstone (id BLOB PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE TABLE lineage (
    source BLOB NOT NULL,
    derived BLOB NOT NULL,
    PRIMARY KEY (source, derived)
) STRICT, WITHOUT ROWID;
CREATE INDEX lineage_derived ON lineage (derived);

CREATE TABLE audit (
    count INTEGER PRIMARY KEY,
    cell BLOB NOT NULL,
    mac BLOB NOT NULL
) STRICT;

CREATE TABLE head (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    memory_seq INTEGER NOT NULL,
    memory_epoch INTEGER NOT NULL,
    memory_erased_seq INTEGER NOT NULL,
    memory_min_seq INTEGER NOT NULL,
    turn_seq INTEGER NOT NULL,
    turn_epoch INTEGER NOT NULL,
    turn_erased_seq INTEGER NOT NULL,
    turn_min_seq INTEGER NOT NULL,
    session_seq INTEGER NOT NULL,
    session_epoch INTEGER NOT NULL,
    session_erased_seq INTEGER NOT NULL,
    session_min_seq INTEGER NOT NULL,
    frozen TEXT NOT NULL,
    destroyed INTEGER NOT NULL,
    audit_count INTEGER NOT NULL,
    audit_mac BLOB NOT NULL,
    due INTEGER NOT NULL,
    due_since INTEGER
) STRICT;
INSERT INTO head VALUES (1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 'none', 0, 0, zeroblob(32), 0, NULL);

-- scope 2 --
CREATE TABLE value (
    name TEXT PRIMARY KEY,
    cell BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- scope 3 --
CREATE TABLE conversation (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    born INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    expiry INTEGER,
    erased INTEGER NOT NULL,
    session BLOB,
    key BLOB,
    cell BLOB,
    vector BLOB,
    blob TEXT
) STRICT;
CREATE UNIQUE INDEX conversation_key ON conversation (key) WHERE key IS NOT NULL;
CREATE INDEX conversation_session ON conversation (session) WHERE session IS NOT NULL;
CREATE INDEX conversation_expiry ON conversation (expiry) WHERE expiry IS NOT NULL;

CREATE TABLE document (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    born INTEGER NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    expiry INTEGER,
    erased INTEGER NOT NULL,
    session BLOB,
    key BLOB,
    cell BLOB,
    vector BLOB,
    blob TEXT
) STRICT;
CREATE UNIQUE INDEX document_key ON document (key) WHERE key IS NOT NULL;
CREATE INDEX document_session ON document (session) WHERE session IS NOT NULL;
CREATE INDEX document_expiry ON document (expiry) WHERE expiry IS NOT NULL;

ALTER TABLE head ADD COLUMN conversation_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN conversation_epoch INTEGER NOT NULL DEFAULT 1;
ALTER TABLE head ADD COLUMN conversation_erased_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN conversation_min_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN document_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN document_epoch INTEGER NOT NULL DEFAULT 1;
ALTER TABLE head ADD COLUMN document_erased_seq INTEGER NOT NULL DEFAULT 0;
ALTER TABLE head ADD COLUMN document_min_seq INTEGER NOT NULL DEFAULT 0;

-- catalog 1 --
CREATE TABLE entry (
    address TEXT PRIMARY KEY,
    name BLOB NOT NULL,
    destroyed INTEGER NOT NULL,
    audit_count INTEGER NOT NULL,
    audit_mac BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstone (
    address TEXT NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (address, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipt (
    number INTEGER PRIMARY KEY,
    address TEXT NOT NULL,
    cell BLOB NOT NULL
) STRICT;
CREATE INDEX receipt_address ON receipt (address);

CREATE TABLE backup (
    address TEXT NOT NULL,
    expires INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (address, expires, name)
) STRICT, WITHOUT ROWID;

-- catalog 2 --
CREATE TABLE shared (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL,
    until REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX shared_until ON shared (until);
