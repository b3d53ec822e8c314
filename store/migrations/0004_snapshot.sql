-- Schema 4. Snapshots of sandboxes: a row for every file of sandbox.snapshots,
-- written before the file and deleted after it.
CREATE TABLE snapshot (
	id TEXT PRIMARY KEY,
	sandbox TEXT NOT NULL,
	name TEXT,
	description TEXT,
	provider TEXT NOT NULL,
	template TEXT NOT NULL,
	state TEXT NOT NULL CHECK (state IN ('making', 'complete')),
	bytes INTEGER NOT NULL DEFAULT 0,
	files INTEGER NOT NULL DEFAULT 0,
	skipped INTEGER NOT NULL DEFAULT 0,
	hash TEXT NOT NULL DEFAULT '',
	created_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX snapshot_name ON snapshot (sandbox, name)
	WHERE name IS NOT NULL;

CREATE VIEW v_snapshots AS
SELECT id, sandbox, name, description, provider, template, state, bytes, files,
	skipped,
	strftime('%Y-%m-%dT%H:%M:%fZ', created_ms / 1000.0, 'unixepoch')
		AS created
FROM snapshot;
