-- Schema 1. Times are INTEGER milliseconds UTC. A migration that was released
-- is never edited; the next one gets the next number.
PRAGMA application_id = 1651668072;

CREATE TABLE sandbox (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL UNIQUE,
	provider TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN
		('pending', 'running', 'suspended', 'failed', 'gone')),
	created_ms INTEGER NOT NULL,
	last_active_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE session (
	id TEXT NOT NULL PRIMARY KEY,
	sandbox_id INTEGER NOT NULL REFERENCES sandbox (id),
	name TEXT,
	kind TEXT NOT NULL CHECK (kind IN ('pty', 'pipe')),
	argv TEXT NOT NULL,
	cwd TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('creating', 'running', 'exited',
		'killed', 'failed', 'lost')),
	exit_code INTEGER,
	exit_signal TEXT,
	pid INTEGER,
	cols INTEGER NOT NULL,
	rows INTEGER NOT NULL,
	created_ms INTEGER NOT NULL,
	started_ms INTEGER,
	exited_ms INTEGER,
	bytes_out INTEGER NOT NULL DEFAULT 0,
	bytes_in INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The guard of get-or-create: one live session of a name. Private processes
-- have no name and may coexist.
CREATE UNIQUE INDEX session_live_name ON session (sandbox_id, name)
	WHERE status IN ('creating', 'running')
	AND name IS NOT NULL AND name <> '';
CREATE INDEX session_by_name ON session (sandbox_id, name, created_ms);
CREATE INDEX session_live ON session (created_ms)
	WHERE status IN ('creating', 'running');

CREATE TABLE attachment (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	identity TEXT NOT NULL,
	key_fingerprint TEXT,
	role TEXT NOT NULL,
	remote_addr TEXT,
	client_version TEXT,
	attached_ms INTEGER NOT NULL,
	detached_ms INTEGER,
	bytes_out INTEGER NOT NULL DEFAULT 0,
	bytes_in INTEGER NOT NULL DEFAULT 0,
	resyncs INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX attachment_by_session ON attachment (session_id);
CREATE INDEX attachment_open ON attachment (attached_ms)
	WHERE detached_ms IS NULL;

-- A recording outlives the row of its session, so it keeps the names itself.
CREATE TABLE recording (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL,
	sandbox TEXT NOT NULL,
	name TEXT,
	path TEXT NOT NULL,
	format TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN
		('open', 'complete', 'truncated', 'pruned')),
	bytes INTEGER NOT NULL DEFAULT 0,
	duration_ms INTEGER NOT NULL DEFAULT 0,
	started_ms INTEGER NOT NULL,
	finished_ms INTEGER,
	gaps INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX recording_by_session ON recording (session_id, started_ms);
CREATE INDEX recording_finished ON recording (finished_ms)
	WHERE state <> 'pruned';

CREATE TABLE recording_index (
	recording_id INTEGER NOT NULL
		REFERENCES recording (id) ON DELETE CASCADE,
	t_ms INTEGER NOT NULL,
	"offset" INTEGER NOT NULL,
	PRIMARY KEY (recording_id, t_ms, "offset")
) STRICT, WITHOUT ROWID;

CREATE TABLE transfer (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	session_id TEXT NOT NULL,
	identity TEXT NOT NULL,
	direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
	path TEXT NOT NULL,
	bytes INTEGER NOT NULL DEFAULT 0,
	started_ms INTEGER NOT NULL,
	finished_ms INTEGER,
	status TEXT NOT NULL
) STRICT;
CREATE INDEX transfer_by_session ON transfer (session_id);

CREATE TABLE audit (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	t_ms INTEGER NOT NULL,
	event TEXT NOT NULL,
	identity TEXT,
	remote_addr TEXT,
	sandbox TEXT,
	session_id TEXT,
	detail TEXT
) STRICT;
CREATE INDEX audit_by_time ON audit (t_ms);

CREATE VIEW v_sessions AS
SELECT s.id, b.name AS sandbox, s.name, s.kind, s.status, s.exit_code,
	s.exit_signal, s.pid, s.cols, s.rows, s.argv, s.cwd,
	strftime('%Y-%m-%dT%H:%M:%fZ', s.created_ms / 1000.0, 'unixepoch')
		AS created,
	strftime('%Y-%m-%dT%H:%M:%fZ', s.started_ms / 1000.0, 'unixepoch')
		AS started,
	strftime('%Y-%m-%dT%H:%M:%fZ', s.exited_ms / 1000.0, 'unixepoch')
		AS exited,
	s.bytes_out, s.bytes_in,
	(SELECT count(*) FROM attachment a
		WHERE a.session_id = s.id AND a.detached_ms IS NULL) AS attached
FROM session s JOIN sandbox b ON b.id = s.sandbox_id;

CREATE VIEW v_recordings AS
SELECT r.id, r.session_id, r.sandbox, r.name, r.path, r.format, r.state,
	r.bytes, r.duration_ms,
	strftime('%Y-%m-%dT%H:%M:%fZ', r.started_ms / 1000.0, 'unixepoch')
		AS started,
	strftime('%Y-%m-%dT%H:%M:%fZ', r.finished_ms / 1000.0, 'unixepoch')
		AS finished,
	r.gaps
FROM recording r;

CREATE VIEW v_attachments AS
SELECT a.id, a.session_id, b.name AS sandbox, s.name, a.identity,
	a.key_fingerprint, a.role, a.remote_addr, a.client_version,
	strftime('%Y-%m-%dT%H:%M:%fZ', a.attached_ms / 1000.0, 'unixepoch')
		AS attached,
	strftime('%Y-%m-%dT%H:%M:%fZ', a.detached_ms / 1000.0, 'unixepoch')
		AS detached,
	a.bytes_out, a.bytes_in, a.resyncs
FROM attachment a
	JOIN session s ON s.id = a.session_id
	JOIN sandbox b ON b.id = s.sandbox_id;

-- Who did what, from every table, one line an event: ORDER BY time.
CREATE VIEW v_activity AS
SELECT strftime('%Y-%m-%dT%H:%M:%fZ', t_ms / 1000.0, 'unixepoch') AS time,
	event, identity, remote_addr, sandbox, name, session_id, detail
FROM (
	SELECT u.t_ms, u.event, u.identity, u.remote_addr, u.sandbox, s.name,
		u.session_id, u.detail
	FROM audit u LEFT JOIN session s ON s.id = u.session_id
	UNION ALL
	SELECT s.created_ms, 'session-created', NULL, NULL, b.name, s.name,
		s.id, s.argv
	FROM session s JOIN sandbox b ON b.id = s.sandbox_id
	UNION ALL
	SELECT s.exited_ms, 'session-' || s.status, NULL, NULL, b.name, s.name,
		s.id, coalesce('signal ' || s.exit_signal,
			'exit code ' || s.exit_code)
	FROM session s JOIN sandbox b ON b.id = s.sandbox_id
	WHERE s.exited_ms IS NOT NULL
	UNION ALL
	SELECT a.attached_ms, 'attached', a.identity, a.remote_addr, b.name,
		s.name, s.id, a.role
	FROM attachment a JOIN session s ON s.id = a.session_id
		JOIN sandbox b ON b.id = s.sandbox_id
	UNION ALL
	SELECT a.detached_ms, 'detached', a.identity, a.remote_addr, b.name,
		s.name, s.id, NULL
	FROM attachment a JOIN session s ON s.id = a.session_id
		JOIN sandbox b ON b.id = s.sandbox_id
	WHERE a.detached_ms IS NOT NULL
	UNION ALL
	SELECT t.started_ms, 'transfer-' || t.direction, t.identity, NULL,
		b.name, s.name, t.session_id, t.path
	FROM transfer t LEFT JOIN session s ON s.id = t.session_id
		LEFT JOIN sandbox b ON b.id = s.sandbox_id
);
