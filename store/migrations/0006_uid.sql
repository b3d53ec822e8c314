-- Schema 6. The uid that a sandbox has for itself, out of sandbox.uid_range; 0
-- where it is that of sandbox.user, and for providers that run it elsewhere.
ALTER TABLE sandbox ADD COLUMN uid INTEGER NOT NULL DEFAULT 0;

DROP VIEW v_sandboxes;
CREATE VIEW v_sandboxes AS
SELECT b.id, b.name, b.provider, b.template, b.uid, b.state, b.detail,
	b.unenforced,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.created_ms / 1000.0, 'unixepoch')
		AS created,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.last_active_ms / 1000.0, 'unixepoch')
		AS last_active,
	(SELECT count(*) FROM session s WHERE s.sandbox_id = b.id
		AND s.status IN ('creating', 'running')) AS sessions
FROM sandbox b;
