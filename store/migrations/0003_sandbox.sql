-- Schema 3. What a sandbox was made from, and what there is to say about it:
-- why it failed, or which of its limits nobody enforces.
ALTER TABLE sandbox ADD COLUMN template TEXT NOT NULL DEFAULT '';
ALTER TABLE sandbox ADD COLUMN detail TEXT;
ALTER TABLE sandbox ADD COLUMN changed_ms INTEGER NOT NULL DEFAULT 0;

CREATE VIEW v_sandboxes AS
SELECT b.id, b.name, b.provider, b.template, b.state, b.detail,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.created_ms / 1000.0, 'unixepoch')
		AS created,
	strftime('%Y-%m-%dT%H:%M:%fZ', b.last_active_ms / 1000.0, 'unixepoch')
		AS last_active,
	(SELECT count(*) FROM session s WHERE s.sandbox_id = b.id
		AND s.status IN ('creating', 'running')) AS sessions
FROM sandbox b;
