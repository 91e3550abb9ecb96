-- postgres 1 --
CREATE TABLE scrubjay.scope (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text COLLATE "C" NOT NULL UNIQUE,
    memory_seq bigint NOT NULL DEFAULT 0,
    memory_epoch bigint NOT NULL DEFAULT 1,
    memory_erased_seq bigint NOT NULL DEFAULT 0,
    memory_min_seq bigint NOT NULL DEFAULT 0,
    turn_seq bigint NOT NULL DEFAULT 0,
    turn_epoch bigint NOT NULL DEFAULT 1,
    turn_erased_seq bigint NOT NULL DEFAULT 0,
    turn_min_seq bigint NOT NULL DEFAULT 0,
    session_seq bigint NOT NULL DEFAULT 0,
    session_epoch bigint NOT NULL DEFAULT 1,
    session_erased_seq bigint NOT NULL DEFAULT 0,
    session_min_seq bigint NOT NULL DEFAULT 0,
    conversation_seq bigint NOT NULL DEFAULT 0,
    conversation_epoch bigint NOT NULL DEFAULT 1,
    conversation_erased_seq bigint NOT NULL DEFAULT 0,
    conversation_min_seq bigint NOT NULL DEFAULT 0,
    document_seq bigint NOT NULL DEFAULT 0,
    document_epoch bigint NOT NULL DEFAULT 1,
    document_erased_seq bigint NOT NULL DEFAULT 0,
    document_min_seq bigint NOT NULL DEFAULT 0,
    frozen text NOT NULL DEFAULT 'none',
    destroyed integer NOT NULL DEFAULT 0,
    audit_count bigint NOT NULL DEFAULT 0,
    audit_mac bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    due integer NOT NULL DEFAULT 0,
    due_since integer,
    turned timestamptz NOT NULL DEFAULT now() -- when an epoch was last raised
) WITH (fillfactor = 50); -- room on the page: every write of a scope updates its head in place

CREATE TABLE scrubjay.sealed (
    scope bigint NOT NULL,
    collection smallint NOT NULL,
    seq bigint NOT NULL,
    id bytea NOT NULL,
    born bigint NOT NULL,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    expiry integer,
    erased boolean NOT NULL,
    session bytea,
    key bytea,
    cell bytea,
    vector bytea,
    blob text,
    PRIMARY KEY (scope, collection, seq)
);
-- Sealed bytes do not compress: it is not tried.
ALTER TABLE scrubjay.sealed
    ALTER COLUMN cell SET STORAGE EXTERNAL, ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX sealed_id ON scrubjay.sealed (scope, collection, id);
CREATE UNIQUE INDEX sealed_key ON scrubjay.sealed (scope, collection, key) WHERE key IS NOT NULL;
CREATE INDEX sealed_session ON scrubjay.sealed (scope, collection, session) WHERE session IS NOT NULL;
CREATE INDEX sealed_expiry ON scrubjay.sealed (scope, collection, expiry) WHERE expiry IS NOT NULL;

CREATE TABLE scrubjay.tombstone (
    scope bigint NOT NULL, id bytea NOT NULL, PRIMARY KEY (scope, id)
);
CREATE TABLE scrubjay.value (
    scope bigint NOT NULL, name text NOT NULL, cell bytea NOT NULL,
    PRIMARY KEY (scope, name)
);
ALTER TABLE scrubjay.value ALTER COLUMN cell SET STORAGE EXTERNAL;
CREATE TABLE scrubjay.lineage (
    scope bigint NOT NULL, source bytea NOT NULL, derived bytea NOT NULL,
    PRIMARY KEY (scope, source, derived)
);
CREATE INDEX lineage_derived ON scrubjay.lineage (scope, derived);
CREATE TABLE scrubjay.audit (
    scope bigint NOT NULL, count bigint NOT NULL, cell bytea NOT NULL, mac bytea NOT NULL,
    PRIMARY KEY (scope, count)
);

CREATE TABLE scrubjay.slot (
    address text COLLATE "C" NOT NULL, purpose text COLLATE "C" NOT NULL, slot bytea NOT NULL,
    PRIMARY KEY (address, purpose)
);

CREATE TABLE scrubjay.entry (
    address text COLLATE "C" PRIMARY KEY,
    name bytea NOT NULL,
    destroyed boolean NOT NULL,
    audit_count bigint NOT NULL,
    audit_mac bytea NOT NULL
);
CREATE TABLE scrubjay.buried (
    address text COLLATE "C" NOT NULL, id bytea NOT NULL, PRIMARY KEY (address, id)
);
CREATE TABLE scrubjay.receipt (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    address text COLLATE "C" NOT NULL,
    cell bytea NOT NULL
);
CREATE UNIQUE INDEX receipt_once ON scrubjay.receipt (address, sha256(cell));
CREATE TABLE scrubjay.backup (
    address text COLLATE "C" NOT NULL, expires integer NOT NULL, name text COLLATE "C" NOT NULL,
    PRIMARY KEY (address, expires, name)
);
CREATE TABLE scrubjay.shared (
    name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL, until double precision NOT NULL
);
CREATE INDEX shared_until ON scrubjay.shared (until);

-- postgres 2 --
-- Not the epoch alone may be too new for a standby: so may a slot that another root key wraps.
ALTER TABLE scrubjay.slot ADD COLUMN turned timestamptz NOT NULL DEFAULT now();
ALTER TABLE scrubjay.scope DROP COLUMN turned;
