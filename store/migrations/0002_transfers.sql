-- Schema 2: transfers by sftp, as the sandbox reports them. status: open, done,
-- failed, cut (the session ended first), unknown (the report was cut), more
-- (later files of that session are not listed).

-- A line of the log names a path; only rows that it may still mean are here.
CREATE INDEX transfer_unsettled ON transfer (session_id, path)
	WHERE status IN ('open', 'failed');

CREATE VIEW v_transfers AS
SELECT t.id, t.session_id, b.name AS sandbox, t.identity, t.direction, t.path,
	t.bytes, t.status,
	strftime('%Y-%m-%dT%H:%M:%fZ', t.started_ms / 1000.0, 'unixepoch')
		AS started,
	strftime('%Y-%m-%dT%H:%M:%fZ', t.finished_ms / 1000.0, 'unixepoch')
		AS finished
FROM transfer t LEFT JOIN session s ON s.id = t.session_id
	LEFT JOIN sandbox b ON b.id = s.sandbox_id;
