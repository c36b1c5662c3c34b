-- Schema 10: lasting approvals in an index that every engine reads.
-- A copy of what such a server has left: it is never changed.
CREATE TABLE keys ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, hint TEXT NOT NULL, hash
  BLOB NOT NULL UNIQUE, admin INTEGER NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,
  revoked_ms INTEGER NOT NULL) STRICT;
CREATE INDEX keys_by_age ON keys (created_ms, id);
CREATE TABLE sessions ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, pool TEXT NOT NULL, name TEXT, metadata
  TEXT, env TEXT, state INTEGER NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, idle_ms
  INTEGER NOT NULL, lifetime_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, executions INTEGER NOT NULL,
  lost INTEGER NOT NULL) STRICT;
CREATE UNIQUE INDEX sessions_named ON sessions (tenant, pool, name) WHERE name IS NOT NULL;
CREATE INDEX sessions_by_age ON sessions (tenant, created_ms, id);
CREATE INDEX sessions_by_end ON sessions (expires_ms);
CREATE TABLE space ( session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, path BLOB NOT NULL,
  hash TEXT NOT NULL, size INTEGER NOT NULL, mode INTEGER NOT NULL, mtime_ms INTEGER NOT NULL, PRIMARY KEY
  (session, path)) STRICT, WITHOUT ROWID;
CREATE INDEX space_by_hash ON space (hash);
CREATE TABLE execs ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, session TEXT NOT NULL, pool TEXT NOT NULL, key
  TEXT, request TEXT NOT NULL, door TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, created_ms
  INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, events_hash TEXT NOT NULL, outcome
  TEXT, code TEXT NOT NULL, events TEXT) STRICT;
CREATE INDEX execs_by_age ON execs (created_ms, id);
CREATE INDEX execs_by_tenant ON execs (tenant, created_ms, id);
CREATE INDEX execs_by_session ON execs (session, created_ms, id);
CREATE INDEX execs_open ON execs (id) WHERE status IN ('queued', 'running');
CREATE INDEX execs_by_hash ON execs (events_hash) WHERE events_hash <> '';
CREATE TABLE files ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, mime TEXT NOT NULL, hash
  TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, downloadable
  INTEGER NOT NULL) STRICT;
CREATE INDEX files_by_age ON files (tenant, created_ms, id);
CREATE INDEX files_by_end ON files (expires_ms) WHERE expires_ms > 0;
CREATE INDEX files_by_hash ON files (hash);
ALTER TABLE keys ADD COLUMN approver INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execs ADD COLUMN approval TEXT;
CREATE TABLE approvals ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, key TEXT NOT NULL, pool TEXT NOT NULL,
  session TEXT NOT NULL, conversation TEXT NOT NULL, tool TEXT NOT NULL, door TEXT NOT NULL, request TEXT NOT
  NULL, digest BLOB NOT NULL, lasting INTEGER NOT NULL, state INTEGER NOT NULL, decided_by TEXT, decided_how
  TEXT, reason TEXT, execution TEXT, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, decided_ms
  INTEGER NOT NULL, taken_ms INTEGER NOT NULL, text_chars INTEGER NOT NULL, text TEXT NOT NULL) STRICT;
CREATE INDEX approvals_by_age ON approvals (created_ms, id);
CREATE INDEX approvals_by_tenant ON approvals (tenant, created_ms, id);
CREATE INDEX approvals_by_state ON approvals (tenant, state, created_ms, id);
CREATE INDEX approvals_open ON approvals (digest, created_ms) WHERE taken_ms = 0;
CREATE INDEX approvals_by_end ON approvals (expires_ms) WHERE state < 2 AND taken_ms = 0;
CREATE INDEX approvals_pending ON approvals (tenant, expires_ms) WHERE state = 0;
CREATE INDEX approvals_of_session ON approvals (session) WHERE state = 1 AND lasting = 1;
CREATE INDEX approvals_of_talk ON approvals (conversation) WHERE state = 1 AND lasting = 1;
CREATE TABLE pools ( name TEXT PRIMARY KEY, settings TEXT NOT NULL, document TEXT, created_ms INTEGER NOT
  NULL, updated_ms INTEGER NOT NULL) STRICT;
CREATE TABLE pool_keys ( pool TEXT NOT NULL, tenant TEXT NOT NULL, key TEXT NOT NULL, secret TEXT NOT NULL,
  PRIMARY KEY (pool, tenant)) STRICT, WITHOUT ROWID;
CREATE TABLE loops ( id TEXT PRIMARY KEY, tenant TEXT NOT NULL, owner TEXT NOT NULL, status TEXT NOT NULL,
  created_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, record TEXT NOT NULL, events TEXT NOT NULL) STRICT;
CREATE INDEX loops_by_tenant ON loops (tenant, created_ms, id);
CREATE INDEX loops_by_owner ON loops (tenant, owner, created_ms, id);
CREATE INDEX loops_by_end ON loops (ended_ms);
CREATE TABLE items ( id TEXT NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, owner TEXT NOT NULL, parent
  TEXT NOT NULL, hash TEXT NOT NULL, size INTEGER NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER
  NOT NULL, expires_ms INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (tenant, kind, id)) STRICT;
CREATE INDEX items_by_age ON items (tenant, kind, created_ms, id);
CREATE INDEX items_by_end ON items (expires_ms) WHERE expires_ms > 0;
CREATE INDEX items_by_hash ON items (hash) WHERE hash <> '';
ALTER TABLE keys ADD COLUMN pools TEXT;
ALTER TABLE keys ADD COLUMN doors TEXT;
ALTER TABLE keys ADD COLUMN read_only INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN expires_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE files ADD COLUMN pools TEXT;
ALTER TABLE items ADD COLUMN pools TEXT;
ALTER TABLE loops ADD COLUMN pool TEXT;

ALTER TABLE sessions ADD COLUMN home TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_by_home ON sessions (home) WHERE home <> '';

INSERT INTO keys (id, tenant, name, hint, hash, admin, created_ms, used_ms, revoked_ms) VALUES
  ('key_0000000000000000000000000001', 'old', 'a key', 'rt_a-s',
  x'1beb949aa65f56d452e4b32b463a80c49d4c17274c02be4b7f62352f1c2eb64a', 1, 1790000000000, 0, 0);
INSERT INTO keys (id, tenant, name, hint, hash, admin, created_ms, used_ms, revoked_ms) VALUES
  ('key_0000000000000000000000000002', 'old', 'a revoked key', 'rt_b-s',
  x'b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2b2', 0, 1790000000000, 0, 1790000000001);
INSERT INTO sessions (id, tenant, pool, name, metadata, env, state, created_ms, used_ms, idle_ms, lifetime_ms,
  expires_ms, executions, lost) VALUES ('sess_0000000000000000000000000001', 'old', 'default', 'talk',
  '{"a":1}', NULL, 3, 1790000000000, 1790000000000, 600000, 86400000, 4102444800000, 1, 1);
INSERT INTO space (session, path, hash, size, mode, mtime_ms) VALUES ('sess_0000000000000000000000000001',
  CAST('saved.txt' AS BLOB), 'e4125e91a7cecd8dd4de0a503bbab8c445ecef3f5cb65ff9699368f38dea417f', 17, 420,
  1790000000000);
INSERT INTO execs (id, tenant, session, pool, key, request, door, kind, status, created_ms, started_ms,
  ended_ms, events_hash, outcome, code, events) VALUES ('exec_0000000000000000000000000001', 'old',
  'sess_0000000000000000000000000001', 'default', 'key_0000000000000000000000000001', 'req_1', 'rest', 'cell',
  'ok', 1790000000000, 1790000000000, 1790000000005, '', '{"status":"ok"}', 'print("hello")',
  '[{"type":"stdout","text":"hello\n"}]');
INSERT INTO files (id, tenant, name, mime, hash, size, created_ms, expires_ms, downloadable) VALUES
  ('file_0000000000000000000000000001', 'old', 'old.txt', 'text/plain',
  'e4125e91a7cecd8dd4de0a503bbab8c445ecef3f5cb65ff9699368f38dea417f', 17, 1790000000000, 0, 1);
INSERT INTO approvals (id, tenant, key, pool, session, conversation, tool, door, request, digest, lasting,
  state, created_ms, expires_ms, decided_ms, taken_ms, text_chars, text) VALUES
  ('apr_0000000000000000000000000001', 'old', 'key_0000000000000000000000000001', 'default', '', '',
  'run_code', 'mcp', 'req_2', x'c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3c3', 0, 2,
  1790000000000, 4102444800000, 1790000000009, 0, 5, 'print');
INSERT INTO pools (name, settings, document, created_ms, updated_ms) VALUES ('made', '{}', NULL,
  1790000000000, 1790000000000);
INSERT INTO loops (id, tenant, owner, status, created_ms, ended_ms, record, events) VALUES
  ('loop_0000000000000000000000000001', 'old', '', 'ok', 1790000000000, 1790000000009, '{}', '[]');
INSERT INTO items (id, tenant, kind, owner, parent, hash, size, created_ms, updated_ms, expires_ms, body)
  VALUES ('doc_0000000000000000000000000001', 'old', 'ubik_document', '', '',
  'e4125e91a7cecd8dd4de0a503bbab8c445ecef3f5cb65ff9699368f38dea417f', 17, 1790000000000, 1790000000000, 0,
  '{}');
CREATE TABLE exec_output (
  exec TEXT NOT NULL, number INTEGER NOT NULL, events TEXT NOT NULL,
  PRIMARY KEY (exec, number)) STRICT, WITHOUT ROWID;
CREATE TABLE item_bytes (tenant TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO item_bytes SELECT tenant, SUM(size) FROM items GROUP BY tenant;
CREATE TRIGGER items_come AFTER INSERT ON items BEGIN INSERT INTO item_bytes VALUES (new.tenant, new.size)
  ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes; END;
CREATE TRIGGER items_change AFTER UPDATE OF size ON items BEGIN
  UPDATE item_bytes SET bytes = bytes + new.size - old.size WHERE tenant = new.tenant; END;
CREATE TRIGGER items_go AFTER DELETE ON items BEGIN
  UPDATE item_bytes SET bytes = bytes - old.size WHERE tenant = old.tenant; END;
PRAGMA user_version = 10;
