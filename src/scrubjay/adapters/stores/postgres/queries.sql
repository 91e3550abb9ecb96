-- has_version --
SELECT 1 FROM pg_class WHERE relname = 'version'
    AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'scrubjay')

-- version --
SELECT number FROM scrubjay.version

-- begin_version --
CREATE SCHEMA IF NOT EXISTS scrubjay;
CREATE TABLE IF NOT EXISTS scrubjay.version (number integer NOT NULL)

-- set_version --
WITH gone AS (DELETE FROM scrubjay.version) INSERT INTO scrubjay.version VALUES (%s)

-- head --
SELECT {head}, number FROM scrubjay.scope WHERE address = %s

-- head_and_value --
SELECT {head}, number, (SELECT cell FROM scrubjay.value WHERE scope = number AND name = %s)
FROM scrubjay.scope WHERE address = %s

-- lock_head --
SELECT {head}, number, pg_current_xact_id()::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
FROM scrubjay.scope WHERE address = %s FOR UPDATE

-- move_head --
UPDATE scrubjay.scope SET ({head}) = ROW ({values}) WHERE number = %s

-- status --
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8), pg_xact_status(%s::xid8)

-- standbys --
SELECT current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') <> 'off',
    (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum'))

-- wal_position --
SELECT pg_current_wal_insert_lsn()::text

-- replicated --
SELECT bool_or(sync_state IN ('sync', 'quorum') AND flush_lsn >= %s::pg_lsn), bool_or(flush_lsn < %s::pg_lsn)
FROM pg_stat_replication

-- turned --
SELECT extract(epoch FROM now() - max(turned))::float FROM scrubjay.slot WHERE address = %s

-- create --
INSERT INTO scrubjay.scope (address) VALUES (%s) ON CONFLICT DO NOTHING

-- remove --
DELETE FROM scrubjay.scope WHERE address = %s RETURNING number

-- row --
SELECT {columns} FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND id = %s

-- rows --
SELECT {columns} FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND id = ANY (%s)

-- row_by_key --
SELECT {columns} FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND key = %s

-- rows_of_session --
SELECT {columns} FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND session = %s ORDER BY seq

-- changes --
SELECT {columns} FROM scrubjay.sealed
WHERE scope = %s AND collection = %s AND seq > %s ORDER BY seq LIMIT %s

-- latest --
SELECT {columns} FROM scrubjay.sealed
WHERE scope = %s AND collection = %s AND seq < %s AND NOT erased ORDER BY seq DESC LIMIT %s

-- overdue --
SELECT {columns} FROM scrubjay.sealed
WHERE scope = %s AND collection = %s AND expiry <= %s ORDER BY seq LIMIT %s

-- stale --
SELECT {columns} FROM scrubjay.sealed
WHERE scope = %s AND collection = %s AND seq > %s AND epoch < %s AND NOT erased ORDER BY seq LIMIT %s

-- count --
SELECT count(*) FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND NOT erased

-- put --
INSERT INTO scrubjay.sealed AS known (scope, collection, {columns})
SELECT %(scope)s, %(collection)s, %(seq)s, %(id)s, %(seq)s, %(version)s, %(epoch)s, %(expiry)s, false,
    %(session)s, %(key)s, %(cell)s, %(vector)s, %(blob)s
WHERE NOT EXISTS (
    SELECT FROM scrubjay.sealed
    WHERE scope = %(scope)s AND collection = %(collection)s AND key = %(key)s AND id <> %(id)s
)
ON CONFLICT (scope, collection, id) DO UPDATE SET
    seq = excluded.seq, version = excluded.version, epoch = excluded.epoch,
    expiry = excluded.expiry, erased = false, session = excluded.session, key = excluded.key,
    cell = excluded.cell, vector = excluded.vector, blob = excluded.blob
RETURNING known.born

-- reseal --
UPDATE scrubjay.sealed SET epoch = %s, cell = %s, vector = %s, blob = %s
WHERE scope = %s AND collection = %s AND id = %s AND version = %s AND epoch = %s
    AND vector IS NOT DISTINCT FROM %s AND NOT erased
RETURNING id

-- erase --
UPDATE scrubjay.sealed SET seq = %s, expiry = %s, erased = true, session = NULL, key = NULL,
    cell = NULL, vector = NULL, blob = NULL
WHERE scope = %s AND collection = %s AND id = %s

-- drop --
DELETE FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND id = ANY (%s) AND erased
RETURNING seq

-- derived --
SELECT derived FROM scrubjay.lineage WHERE scope = %s AND source = %s ORDER BY derived

-- link --
INSERT INTO scrubjay.lineage VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- unlink_source --
DELETE FROM scrubjay.lineage WHERE scope = %s AND source = %s

-- unlink_derived --
DELETE FROM scrubjay.lineage WHERE scope = %s AND derived = %s

-- buried --
SELECT id FROM scrubjay.tombstone WHERE scope = %s AND id = ANY (%s)

-- tombstones --
SELECT id FROM scrubjay.tombstone WHERE scope = %s ORDER BY id

-- bury --
INSERT INTO scrubjay.tombstone SELECT %s, unnest(%s::bytea[]) ON CONFLICT DO NOTHING

-- value --
SELECT cell FROM scrubjay.value WHERE scope = %s AND name = %s

-- set_value --
INSERT INTO scrubjay.value VALUES (%s, %s, %s) ON CONFLICT (scope, name) DO UPDATE SET cell = excluded.cell

-- remove_value --
DELETE FROM scrubjay.value WHERE scope = %s AND name = %s

-- audit --
SELECT count, cell, mac FROM scrubjay.audit WHERE scope = %s AND count > %s ORDER BY count LIMIT %s

-- append_audit --
INSERT INTO scrubjay.audit VALUES (%s, %s, %s, %s)

-- clear --
DELETE FROM {table} WHERE scope = %s

-- size --
SELECT coalesce(sum(pg_column_size(part)), 0) FROM {table} AS part WHERE scope = %s

-- beyond_head --
SELECT collection, count(*) FROM scrubjay.sealed WHERE scope = %s AND (
    seq > (%s::bigint[])[collection + 1] OR born > seq) GROUP BY collection

-- erased_with_content --
SELECT collection, count(*) FROM scrubjay.sealed
WHERE scope = %s AND erased AND num_nonnulls(cell, vector, blob, key, session) > 0 GROUP BY collection

-- audit_extent --
SELECT count(*), coalesce(min(count), 0), coalesce(max(count), 0) FROM scrubjay.audit WHERE scope = %s

-- raw_scope --
SELECT place, piece FROM (
    SELECT 'sealed/' || collection || '/' || seq AS place, id || coalesce(cell, '') || coalesce(vector, '')
        || convert_to(coalesce(blob, ''), 'UTF8') || coalesce(session, '') || coalesce(key, '') AS piece
    FROM scrubjay.sealed WHERE scope = %s
    UNION ALL SELECT 'tombstone', id FROM scrubjay.tombstone WHERE scope = %s
    UNION ALL SELECT 'lineage', source || derived FROM scrubjay.lineage WHERE scope = %s
    UNION ALL SELECT 'value/' || name, cell FROM scrubjay.value WHERE scope = %s
    UNION ALL SELECT 'audit/' || count, cell || mac FROM scrubjay.audit WHERE scope = %s
) AS kept

-- raw_catalog --
SELECT 'entry/' || address, name || audit_mac FROM scrubjay.entry
UNION ALL SELECT 'buried/' || address, id FROM scrubjay.buried
UNION ALL SELECT 'receipt/' || number, cell FROM scrubjay.receipt
UNION ALL SELECT 'shared/' || name, value FROM scrubjay.shared
UNION ALL SELECT 'slot/' || address || '/' || purpose, slot FROM scrubjay.slot

-- strays --
SELECT 'The rows of ' || address || ' belong to no scope of the catalog.' AS sentence FROM scrubjay.scope
WHERE address NOT IN (SELECT address FROM scrubjay.entry)
UNION ALL
SELECT 'A scope of the catalog has lost its rows: ' || address || '.' FROM scrubjay.entry
WHERE NOT destroyed AND address NOT IN (SELECT address FROM scrubjay.scope)
ORDER BY sentence

-- entry --
SELECT address, name, destroyed, audit_count, audit_mac FROM scrubjay.entry WHERE address = %s

-- entries --
SELECT address, name, destroyed, audit_count, audit_mac FROM scrubjay.entry
WHERE address > %s ORDER BY address LIMIT %s

-- enroll --
INSERT INTO scrubjay.entry VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING

-- mark_destroyed --
UPDATE scrubjay.entry SET destroyed = true WHERE address = %s

-- note_audit --
UPDATE scrubjay.entry SET audit_count = %s, audit_mac = %s WHERE address = %s AND audit_count < %s

-- bury_in_catalog --
INSERT INTO scrubjay.buried SELECT %s, one FROM unnest(%s::bytea[]) AS one ORDER BY one
ON CONFLICT DO NOTHING

-- tombstones_in_catalog --
SELECT id FROM scrubjay.buried WHERE address = %s

-- add_receipt --
INSERT INTO scrubjay.receipt (address, cell) VALUES (%s, %s) ON CONFLICT DO NOTHING

-- receipts --
SELECT cell FROM scrubjay.receipt WHERE address = %s ORDER BY number

-- add_backup --
INSERT INTO scrubjay.backup VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- backups --
SELECT address, expires, name FROM scrubjay.backup WHERE address = %s ORDER BY expires, name

-- remove_backup --
DELETE FROM scrubjay.backup WHERE address = %s AND expires = %s AND name = %s

-- shared --
SELECT value FROM scrubjay.shared WHERE name = %s AND until > %s

-- region --
SELECT convert_from(value, 'UTF8') FROM scrubjay.shared WHERE name = 'region'

-- label --
INSERT INTO scrubjay.shared VALUES ('region', convert_to(%s, 'UTF8'), 'infinity') ON CONFLICT DO NOTHING

-- lock_shared --
SELECT pg_advisory_xact_lock(hashtextextended('shared/' || %s, 0))

-- set_shared --
INSERT INTO scrubjay.shared VALUES (%s, %s, %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, until = excluded.until

-- remove_shared --
DELETE FROM scrubjay.shared WHERE name = %s

-- expire_shared --
DELETE FROM scrubjay.shared WHERE name IN (
    SELECT name FROM scrubjay.shared WHERE until <= %s LIMIT 100 FOR UPDATE SKIP LOCKED)

-- shared_names --
SELECT name FROM scrubjay.shared
WHERE name > %s AND starts_with(name, %s) AND until > %s ORDER BY name LIMIT %s

-- slots --
SELECT purpose, slot FROM scrubjay.slot WHERE address = %s ORDER BY purpose

-- lock_slots --
SELECT pg_advisory_xact_lock(hashtextextended('slots/' || %s, 0))

-- add_slot --
INSERT INTO scrubjay.slot (address, purpose, slot) VALUES (%s, %s, %s)

-- set_slot --
INSERT INTO scrubjay.slot (address, purpose, slot) VALUES (%s, %s, %s)
ON CONFLICT (address, purpose) DO UPDATE SET slot = excluded.slot, turned = now()

-- exchange_slot --
UPDATE scrubjay.slot SET slot = %s, turned = now() WHERE address = %s AND purpose = %s AND slot = %s RETURNING 1

-- delete_slots --
DELETE FROM scrubjay.slot WHERE address = %s AND purpose = ANY (%s)

-- remove_slots --
DELETE FROM scrubjay.slot WHERE address = %s

-- slot_addresses --
SELECT DISTINCT address FROM scrubjay.slot WHERE address > %s ORDER BY address LIMIT %s

-- value_names --
SELECT name FROM scrubjay.value WHERE scope = %s ORDER BY name COLLATE "C"

-- links --
SELECT source, derived FROM scrubjay.lineage WHERE scope = %s ORDER BY source, derived

-- unlink --
DELETE FROM scrubjay.lineage WHERE scope = %s AND source = %s AND derived = %s

-- remove_rows --
DELETE FROM scrubjay.sealed WHERE scope = %s AND collection = %s AND id = ANY (%s)

-- place --
INSERT INTO scrubjay.sealed (scope, collection, {columns})
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
