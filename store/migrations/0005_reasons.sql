-- Why a session ended, as a word for machines: oom (its sandbox reached the
-- limit of memory), idle, lifetime (its sandbox was removed for that). And which
-- limits of a sandbox nobody enforces here: "memory, cpu".
ALTER TABLE session ADD COLUMN reason TEXT;
ALTER TABLE sandbox ADD COLUMN unenforced TEXT NOT NULL DEFAULT '';

DROP VIEW v_sessions;
CREATE VIEW v_sessions AS
SELECT s.id, b.name AS sandbox, s.name, s.kind, s.status, s.exit_code,
	s.exit_signal, s.reason, s.pid, s.cols, s.rows, s.argv, s.cwd,
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

DROP VIEW v_sandboxes;
CREATE VIEW v_sandboxes AS
SELECT b.id, b.name, b.provider, b.template, b.state, b.detail, b.unenforced,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.created_ms / 1000.0, 'unixepoch')
		AS created,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.last_active_ms / 1000.0, 'unixepoch')
		AS last_active,
	(SELECT count(*) FROM session s WHERE s.sandbox_id = b.id
		AND s.status IN ('creating', 'running')) AS sessions
FROM sandbox b;
