-- head --
SELECT memory_seq, memory_epoch, memory_erased_seq, memory_min_seq,
       turn_seq, turn_epoch, turn_erased_seq, turn_min_seq,
       session_seq, session_epoch, session_erased_seq, session_min_seq,
       conversation_seq, conversation_epoch, conversation_erased_seq, conversation_min_seq,
       document_seq, document_epoch, document_erased_seq, document_min_seq,
       frozen, destroyed, audit_count, audit_mac, due, due_since
FROM head

-- move_head --
UPDATE head SET
    memory_seq = ?, memory_epoch = ?, memory_erased_seq = ?, memory_min_seq = ?,
    turn_seq = ?, turn_epoch = ?, turn_erased_seq = ?, turn_min_seq = ?,
    session_seq = ?, session_epoch = ?, session_erased_seq = ?, session_min_seq = ?,
    conversation_seq = ?, conversation_epoch = ?, conversation_erased_seq = ?,
    conversation_min_seq = ?,
    document_seq = ?, document_epoch = ?, document_erased_seq = ?, document_min_seq = ?,
    frozen = ?, destroyed = ?, audit_count = ?, audit_mac = ?, due = ?, due_since = ?

-- row --
SELECT {columns} FROM {table} WHERE id = ?

-- rows --
SELECT {columns} FROM {table} WHERE id IN carray(?)

-- row_by_key --
SELECT {columns} FROM {table} WHERE key = ? AND erased = 0

-- rows_of_session --
SELECT {columns} FROM {table} WHERE session = ? AND erased = 0 ORDER BY seq

-- changes --
SELECT {columns} FROM {table} WHERE seq > ? ORDER BY seq LIMIT ?

-- latest --
SELECT {columns} FROM {table} WHERE seq < ? AND erased = 0 ORDER BY seq DESC LIMIT ?

-- overdue --
SELECT {columns} FROM {table} WHERE expiry <= ? ORDER BY seq LIMIT ?

-- stale --
SELECT {columns} FROM {table} WHERE seq > ? AND epoch < ? AND erased = 0 ORDER BY seq LIMIT ?

-- insert --
INSERT INTO {table} ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- rewrite --
UPDATE {table} SET seq = ?, version = ?, epoch = ?, expiry = ?, erased = 0, session = ?, key = ?,
    cell = ?, vector = ?, blob = ?
WHERE id = ?

-- reseal --
UPDATE {table} SET epoch = ?, cell = ?, vector = ?, blob = ?
WHERE id = ? AND version = ? AND epoch = ? AND vector IS ? AND erased = 0
RETURNING id

-- erase --
UPDATE {table} SET seq = ?, expiry = ?, erased = 1, session = NULL, key = NULL,
    cell = NULL, vector = NULL, blob = NULL
WHERE id = ?

-- drop --
DELETE FROM {table} WHERE id = ? AND erased = 1 RETURNING seq

-- clear --
DELETE FROM {table}

-- derived --
SELECT derived FROM lineage WHERE source = ? ORDER BY derived

-- link --
INSERT OR IGNORE INTO lineage (source, derived) VALUES (?, ?)

-- unlink_source --
DELETE FROM lineage WHERE source = ?

-- unlink_derived --
DELETE FROM lineage WHERE derived = ?

-- buried --
SELECT id FROM tombstone WHERE id IN carray(?)

-- tombstones --
SELECT id FROM tombstone ORDER BY id

-- bury --
INSERT OR IGNORE INTO tombstone (id) VALUES (?)

-- value --
SELECT cell FROM value WHERE name = ?

-- set_value --
INSERT INTO value (name, cell) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET cell = excluded.cell

-- remove_value --
DELETE FROM value WHERE name = ?

-- clear_values --
DELETE FROM value

-- audit --
SELECT count, cell, mac FROM audit WHERE count > ? ORDER BY count LIMIT ?

-- append_audit --
INSERT INTO audit (count, cell, mac) VALUES (?, ?, ?)

-- used_pages --
SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count

-- count --
SELECT count(*) FROM {table} WHERE erased = 0

-- page_size --
PRAGMA page_size

-- integrity --
PRAGMA integrity_check(20)

-- beyond_head --
SELECT count(*) FROM {table}, head WHERE seq > {table}_seq OR born > seq

-- erased_with_content --
SELECT count(*) FROM {table}
WHERE erased = 1 AND coalesce(cell, vector, blob, key, session) IS NOT NULL

-- audit_extent --
SELECT count(*), coalesce(min(count), 0), coalesce(max(count), 0) FROM audit

-- entry --
SELECT address, name, destroyed, audit_count, audit_mac FROM entry WHERE address = ?

-- entries --
SELECT address, name, destroyed, audit_count, audit_mac FROM entry
WHERE address > ? ORDER BY address LIMIT ?

-- enroll --
INSERT OR IGNORE INTO entry (address, name, destroyed, audit_count, audit_mac)
VALUES (?, ?, ?, ?, ?)

-- mark_destroyed --
UPDATE entry SET destroyed = 1 WHERE address = ?

-- note_audit --
UPDATE entry SET audit_count = ?, audit_mac = ? WHERE address = ? AND audit_count < ?

-- bury_in_catalog --
INSERT OR IGNORE INTO tombstone (address, id) VALUES (?, ?)

-- tombstones_in_catalog --
SELECT id FROM tombstone WHERE address = ?

-- add_receipt --
INSERT INTO receipt (address, cell)
SELECT :address, :cell
WHERE NOT EXISTS (SELECT 1 FROM receipt WHERE address = :address AND cell = :cell)

-- receipts --
SELECT cell FROM receipt WHERE address = ? ORDER BY number

-- add_backup --
INSERT OR IGNORE INTO backup (address, expires, name) VALUES (?, ?, ?)

-- backups --
SELECT address, expires, name FROM backup WHERE address = ? ORDER BY expires, name

-- remove_backup --
DELETE FROM backup WHERE address = ? AND expires = ? AND name = ?

-- shared --
SELECT value FROM shared WHERE name = ? AND until > ?

-- set_shared --
INSERT INTO shared (name, value, until) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, until = excluded.until

-- remove_shared --
DELETE FROM shared WHERE name = ? OR until <= ?

-- shared_names --
SELECT name FROM shared
WHERE name > ? AND name >= ? AND substr(name, 1, length(?)) = ? AND until > ? ORDER BY name LIMIT ?

-- clear_tombstones --
DELETE FROM tombstone

-- clear_lineage --
DELETE FROM lineage

-- clear_audit --
DELETE FROM audit

-- value_names --
SELECT name FROM value ORDER BY name

-- links --
SELECT source, derived FROM lineage ORDER BY source, derived

-- unlink --
DELETE FROM lineage WHERE source = ? AND derived = ?

-- remove --
DELETE FROM {table} WHERE id = ?

-- place --
INSERT INTO {table} ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
