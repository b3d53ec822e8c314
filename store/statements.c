/*
 * All SQL text of berth besides the migrations; see statements.h. Parameters
 * are bound by name. A status only moves forward: the WHERE clauses see to it.
 */
#include "store/statements.h"

#define SESSION_COLUMNS                                                      \
	"SELECT s.id, s.sandbox_id, b.name, s.name, s.kind, s.argv, s.cwd,"  \
	" s.status, s.exit_code, s.exit_signal, s.pid, s.cols, s.rows,"      \
	" s.created_ms, s.started_ms, s.exited_ms, s.bytes_out, s.bytes_in," \
	" s.reason"                                                          \
	" FROM session s JOIN sandbox b ON b.id = s.sandbox_id "

#define SANDBOX_COLUMNS                                                 \
	"SELECT id, name, provider, state, created_ms, last_active_ms," \
	" template, detail, changed_ms, unenforced, uid FROM sandbox "

#define SNAPSHOT_COLUMNS                                                    \
	"SELECT id, sandbox, name, description, provider, template, state," \
	" bytes, files, skipped, created_ms, hash FROM snapshot "

#define SESSION_IS_LIVE "status IN ('creating', 'running')"

/* Who was attached to :session_id first: a private process has nobody else. */
#define SESSION_FIRST                                         \
	"(SELECT min(id) FROM attachment WHERE session_id = " \
	":session_id)"

/* A term of the index transfer_unsettled, word for word. */
#define TRANSFER_IS_UNSETTLED "status IN ('open', 'failed')"

#define RECORDING_COLUMNS                                                   \
	"SELECT id, session_id, sandbox, name, path, format, state, bytes," \
	" duration_ms, started_ms, finished_ms, gaps FROM recording "

static const struct statement_row statement_rows[STATEMENT_COUNT] = {
	[STATEMENT_BEGIN] = { "begin", "BEGIN IMMEDIATE" },
	[STATEMENT_COMMIT] = { "commit", "COMMIT" },
	[STATEMENT_ROLLBACK] = { "rollback", "ROLLBACK" },
	/* Not max(id): the id of a deleted row is not handed out again. */
	[STATEMENT_LAST_IDS] = { "last_ids",
	    "SELECT"
	    " coalesce((SELECT seq FROM sqlite_sequence"
	    " WHERE name = 'attachment'), 0),"
	    " coalesce((SELECT seq FROM sqlite_sequence"
	    " WHERE name = 'recording'), 0)" },

	[SANDBOX_GET] = { "sandbox_get", SANDBOX_COLUMNS "WHERE name = :name" },
	[SANDBOX_EACH] = { "sandbox_each", SANDBOX_COLUMNS "ORDER BY name" },
	/* A name that was removed may be used again. */
	[SANDBOX_INSERT] = { "sandbox_insert",
	    "INSERT INTO sandbox"
	    " (name, provider, template, state, created_ms, last_active_ms,"
	    " changed_ms, uid)"
	    " VALUES (:name, :provider, :template, :state, :created_ms,"
	    " :last_active_ms, :created_ms, :uid)"
	    " ON CONFLICT (name) DO UPDATE SET provider = excluded.provider,"
	    " template = excluded.template, state = excluded.state,"
	    " created_ms = excluded.created_ms, detail = NULL,"
	    " unenforced = '', uid = excluded.uid,"
	    " last_active_ms = excluded.last_active_ms,"
	    " changed_ms = excluded.changed_ms"
	    " WHERE sandbox.state = 'gone'" },
	[SANDBOX_STATE] = { "sandbox_state",
	    "UPDATE sandbox SET state = :state, detail = :detail,"
	    " changed_ms = :now_ms WHERE id = :id" },
	[SANDBOX_TOUCH] = { "sandbox_touch",
	    "UPDATE sandbox"
	    " SET last_active_ms = max(last_active_ms, :now_ms)"
	    " WHERE id = :id",
	    .may_drop = true },

	[SANDBOX_UNENFORCED] = { "sandbox_unenforced",
	    "UPDATE sandbox SET unenforced = :limits WHERE id = :id" },
	[SNAPSHOT_INSERT] = { "snapshot_insert",
	    "INSERT INTO snapshot (id, sandbox, name, description, provider,"
	    " template, state, created_ms)"
	    " VALUES (:id, :sandbox, :name, :description, :provider,"
	    " :template, 'making', :created_ms)" },
	[SNAPSHOT_COMPLETE] = { "snapshot_complete",
	    "UPDATE snapshot SET state = 'complete', bytes = :bytes,"
	    " files = :files, skipped = :skipped, hash = :hash"
	    " WHERE id = :id" },
	[SNAPSHOT_DELETE] = { "snapshot_delete",
	    "DELETE FROM snapshot WHERE id = :id" },
	/* Two are enough to know that a reference is ambiguous. */
	[SNAPSHOT_BY_PREFIX] = { "snapshot_by_prefix",
	    SNAPSHOT_COLUMNS "WHERE id >= :ref AND id < :ref || 'g'"
			     " ORDER BY id LIMIT 2" },
	[SNAPSHOT_BY_NAME] = { "snapshot_by_name",
	    SNAPSHOT_COLUMNS "WHERE name = :ref"
			     " OR sandbox || '+' || name = :ref"
			     " ORDER BY id LIMIT 2" },
	[SNAPSHOT_LIST] = { "snapshot_list",
	    SNAPSHOT_COLUMNS "WHERE :sandbox IS NULL OR sandbox = :sandbox"
			     " ORDER BY created_ms, id" },

	[SESSION_INSERT] = { "session_insert",
	    "INSERT INTO session (id, sandbox_id, name, kind, argv, cwd,"
	    " status, cols, rows, created_ms)"
	    " VALUES (:id, :sandbox_id, :name, :kind, :argv, :cwd,"
	    " 'creating', :cols, :rows, :created_ms)" },
	[SESSION_STARTED] = { "session_started",
	    "UPDATE session SET status = 'running', pid = :pid,"
	    " started_ms = :started_ms"
	    " WHERE id = :id AND status = 'creating'" },
	[SESSION_PROGRESS] = { "session_progress",
	    "UPDATE session SET"
	    " cols = CASE WHEN :cols > 0 THEN :cols ELSE cols END,"
	    " rows = CASE WHEN :rows > 0 THEN :rows ELSE rows END,"
	    " bytes_out = max(bytes_out, :bytes_out),"
	    " bytes_in = max(bytes_in, :bytes_in)"
	    " WHERE id = :id AND " SESSION_IS_LIVE,
	    .may_drop = true },
	[SESSION_ENDED] = { "session_ended",
	    "UPDATE session SET status = :status, exit_code = :exit_code,"
	    " exit_signal = :exit_signal, exited_ms = :exited_ms,"
	    " reason = :reason,"
	    " bytes_out = max(bytes_out, :bytes_out),"
	    " bytes_in = max(bytes_in, :bytes_in)"
	    " WHERE id = :id AND " SESSION_IS_LIVE },
	[SESSION_DELETE] = { "session_delete",
	    "DELETE FROM session WHERE id = :id AND NOT " SESSION_IS_LIVE },
	[SESSION_GET] = { "session_get", SESSION_COLUMNS "WHERE s.id = :id" },
	/* Two are enough to know that a prefix is ambiguous; 'g' is after hex. */
	[SESSION_BY_PREFIX] = { "session_by_prefix",
	    SESSION_COLUMNS "WHERE s.id >= :ref AND s.id < :ref || 'g'"
			    " ORDER BY s.id LIMIT 2" },
	[SESSION_BY_NAME] = { "session_by_name",
	    SESSION_COLUMNS "WHERE b.name = :sandbox AND s.name = :name"
			    " ORDER BY s." SESSION_IS_LIVE " DESC,"
			    " s.created_ms DESC, s.rowid DESC LIMIT 1" },
	[SESSION_LIST] = { "session_list",
	    SESSION_COLUMNS "WHERE :all OR s." SESSION_IS_LIVE
			    " ORDER BY s." SESSION_IS_LIVE " DESC,"
			    " s.created_ms, s.rowid" },

	[ATTACHMENT_INSERT] = { "attachment_insert",
	    "INSERT OR IGNORE INTO attachment (id, session_id, identity,"
	    " key_fingerprint, role, remote_addr, client_version,"
	    " attached_ms)"
	    " VALUES (:id, :session_id, :identity, :key_fingerprint,"
	    " :role, :remote_addr, :client_version, :attached_ms)" },
	[ATTACHMENT_ENDED] = { "attachment_ended",
	    "UPDATE attachment"
	    " SET detached_ms = coalesce(detached_ms, :now_ms),"
	    " bytes_out = :bytes_out, bytes_in = :bytes_in,"
	    " resyncs = :resyncs"
	    " WHERE id = :id AND session_id = :session_id" },
	[ATTACHMENT_END_ALL] = { "attachment_end_all",
	    "UPDATE attachment SET detached_ms = :now_ms"
	    " WHERE detached_ms IS NULL"
	    " AND (:session_id IS NULL OR session_id = :session_id)" },
	[ATTACHMENT_LIST_OPEN] = { "attachment_list_open",
	    "SELECT a.id, a.session_id, b.name, s.name, a.identity,"
	    " a.key_fingerprint, a.role, a.remote_addr, a.client_version,"
	    " a.attached_ms, a.detached_ms, a.bytes_out, a.bytes_in,"
	    " a.resyncs FROM attachment a"
	    " JOIN session s ON s.id = a.session_id"
	    " JOIN sandbox b ON b.id = s.sandbox_id"
	    " WHERE a.detached_ms IS NULL ORDER BY a.attached_ms, a.id" },

	[RECORDING_INSERT] = { "recording_insert",
	    "INSERT INTO recording (id, session_id, sandbox, name, path,"
	    " format, state, started_ms)"
	    " SELECT :id, :session_id,"
	    " coalesce((SELECT b.name FROM session s JOIN sandbox b"
	    " ON b.id = s.sandbox_id WHERE s.id = :session_id), :sandbox),"
	    " coalesce((SELECT name FROM session WHERE id = :session_id),"
	    " :name), :path, :format, :state, :started_ms" },
	[RECORDING_PROGRESS] = { "recording_progress",
	    "UPDATE recording SET bytes = :bytes, duration_ms = :duration_ms"
	    " WHERE id = :id AND state = 'open'",
	    .may_drop = true },
	[RECORDING_FINISHED] = { "recording_finished",
	    "UPDATE recording SET state = :state, bytes = :bytes,"
	    " duration_ms = :duration_ms, finished_ms = :finished_ms,"
	    " gaps = :gaps WHERE id = :id" },
	[RECORDING_INDEX] = { "recording_index",
	    "INSERT OR IGNORE INTO recording_index"
	    " (recording_id, t_ms, \"offset\")"
	    " VALUES (:id, :t_ms, :offset)",
	    .may_drop = true },
	[RECORDING_INDEX_CUT] = { "recording_index_cut",
	    "DELETE FROM recording_index"
	    " WHERE recording_id = :id AND \"offset\" >= :bytes" },
	[RECORDING_BY_ID] = { "recording_by_id",
	    RECORDING_COLUMNS "WHERE id = :id" },
	[RECORDING_BY_SESSION] = { "recording_by_session",
	    RECORDING_COLUMNS "WHERE session_id >= :ref"
			      " AND session_id < :ref || 'g'"
			      " ORDER BY session_id, started_ms DESC,"
			      " id DESC" },
	[RECORDING_BY_NAME] = { "recording_by_name",
	    RECORDING_COLUMNS "WHERE sandbox = :sandbox AND name = :name"
			      " ORDER BY started_ms DESC, id DESC"
			      " LIMIT 1" },
	[RECORDING_LIST] = { "recording_list",
	    RECORDING_COLUMNS "ORDER BY started_ms, id" },
	[RECORDING_EXPIRED] = { "recording_expired",
	    RECORDING_COLUMNS "WHERE state <> 'pruned'"
			      " AND finished_ms < :before_ms"
			      " ORDER BY finished_ms, id LIMIT :limit" },

	[AUDIT_INSERT] = { "audit_insert",
	    "INSERT INTO audit (t_ms, event, identity, remote_addr,"
	    " sandbox, session_id, detail)"
	    " VALUES (:t_ms, :event, :identity, :remote_addr, :sandbox,"
	    " :session_id, :detail)" },
	[AUDIT_SESSION] = { "audit_session",
	    "INSERT INTO audit (t_ms, event, identity, remote_addr,"
	    " sandbox, session_id, detail)"
	    " SELECT :t_ms, :event, a.identity, a.remote_addr, :sandbox,"
	    " :session_id, :detail"
	    " FROM (SELECT 1) LEFT JOIN attachment a"
	    " ON a.id = " SESSION_FIRST },

	[TRANSFER_INSERT] = { "transfer_insert",
	    "INSERT INTO transfer (session_id, identity, direction, path,"
	    " bytes, started_ms, finished_ms, status)"
	    " SELECT :session_id, coalesce(a.identity, ''), :direction,"
	    " :path, :bytes, :started_ms, :finished_ms, :status"
	    " FROM (SELECT 1) LEFT JOIN attachment a"
	    " ON a.id = " SESSION_FIRST },
	[TRANSFER_FINISH] = { "transfer_finish",
	    "UPDATE transfer SET status = :status, bytes = :bytes,"
	    " finished_ms = :finished_ms,"
	    " direction = CASE WHEN :bytes > 0 THEN :direction"
	    " ELSE direction END"
	    " WHERE id = (SELECT id FROM transfer"
	    " WHERE session_id = :session_id AND path = :path"
	    " AND " TRANSFER_IS_UNSETTLED " ORDER BY status = 'failed',"
	    " CASE status WHEN 'failed' THEN -id ELSE id END LIMIT 1)" },
	[TRANSFER_FAILED] = { "transfer_failed",
	    "UPDATE transfer SET status = 'failed', finished_ms = :now_ms"
	    " WHERE status = 'open' AND id = (SELECT max(id) FROM transfer"
	    " WHERE session_id = :session_id)" },
	[TRANSFER_END_AUDIT] = { "transfer_end_audit",
	    "INSERT INTO audit (t_ms, event, identity, sandbox, session_id,"
	    " detail)"
	    " SELECT :now_ms, 'transfer', identity, :sandbox, session_id,"
	    " CASE status WHEN 'open' THEN 'cut' ELSE status END || ' ' ||"
	    " direction || ' ' || bytes || ' bytes: ' || path FROM transfer"
	    " WHERE session_id = :session_id AND " TRANSFER_IS_UNSETTLED
	    " ORDER BY id" },
	[TRANSFER_END] = { "transfer_end",
	    "UPDATE transfer SET status = 'cut', finished_ms = :now_ms"
	    " WHERE session_id = :session_id AND status = 'open'" },
};

const struct statement_row *
statement_row(enum statement id)
{
	return &statement_rows[id];
}
