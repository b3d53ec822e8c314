/* Encoders and decoders of the payloads; see messages.h. */
#include "sessions/wire/messages.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

#define WIRE_PATH_MAX    4096
#define WIRE_HOST_KEYS   16
#define WIRE_KEY_PEM_MAX 16384
#define WIRE_KEY_B64_MAX 16384

static int
wire_done(const struct reader *r)
{
	return reader_done(r) ? 0 : -EPROTO;
}

static void
wire_put_exit(struct buf *b, const struct wire_exit *m)
{
	buf_put_u8(b, m->is_signal);
	buf_put_u8(b, m->core_dumped);
	buf_put_u32(b, m->value);
	buf_put_str(b, m->note);
}

static void
wire_get_exit(struct reader *r, struct wire_exit *out)
{
	out->is_signal = reader_u8(r);
	out->core_dumped = reader_u8(r);
	out->value = reader_u32(r);
	reader_str_into(r, out->note, sizeof(out->note));
	if (out->is_signal > 1 || out->core_dumped > 1)
		r->failed = true;
}

void
wire_exit_encode(struct buf *b, const struct wire_exit *m)
{
	wire_put_exit(b, m);
}

int
wire_exit_decode(const void *p, size_t n, struct wire_exit *out)
{
	struct reader r = reader_over(p, n);

	wire_get_exit(&r, out);
	return wire_done(&r);
}

static void
wire_put_size(struct buf *b, const struct wire_size *m)
{
	buf_put_u32(b, m->cols);
	buf_put_u32(b, m->rows);
	buf_put_u32(b, m->xpixel);
	buf_put_u32(b, m->ypixel);
}

static void
wire_get_size(struct reader *r, struct wire_size *out)
{
	out->cols = reader_u32(r);
	out->rows = reader_u32(r);
	out->xpixel = reader_u32(r);
	out->ypixel = reader_u32(r);
}

void
wire_size_encode(struct buf *b, const struct wire_size *m)
{
	wire_put_size(b, m);
}

int
wire_size_decode(const void *p, size_t n, struct wire_size *out)
{
	struct reader r = reader_over(p, n);

	wire_get_size(&r, out);
	return wire_done(&r);
}

static void
wire_put_detach_key(struct buf *b, const struct wire_detach_key *m)
{
	buf_put_u8(b, m->n);
	for (unsigned i = 0; i < m->n; i++) {
		buf_put_u32(b, m->keys[i].ch);
		buf_put_u8(b, m->keys[i].is_ctrl);
	}
}

static void
wire_get_detach_key(struct reader *r, struct wire_detach_key *out)
{
	out->n = reader_u8(r);
	if (out->n > WIRE_KEYS_MAX) {
		out->n = 0;
		r->failed = true;
	}
	for (unsigned i = 0; i < out->n; i++) {
		out->keys[i].ch = reader_u32(r);
		out->keys[i].is_ctrl = reader_u8(r);
		if (out->keys[i].is_ctrl > 1)
			r->failed = true;
	}
}

static void
wire_put_answer(struct buf *b, const struct wire_answer *m)
{
	buf_put_str(b, m->name);
	buf_put_u32(b, m->foreground);
	buf_put_u32(b, m->background);
	buf_put_u32(b, m->cursor);
}

static void
wire_get_answer(struct reader *r, struct wire_answer *out)
{
	reader_str_into(r, out->name, sizeof(out->name));
	out->foreground = reader_u32(r);
	out->background = reader_u32(r);
	out->cursor = reader_u32(r);
	if ((out->foreground | out->background | out->cursor) > 0xffffffU)
		r->failed = true;
}

void
wire_launch_encode(struct buf *b, const struct wire_launch *m)
{
	uint32_t flags = m->flags & ~(uint32_t)LAUNCH_LIMITS;

	/* Keepers of before there were limits read the rest. */
	if (m->max_processes || m->max_data)
		flags |= LAUNCH_LIMITS;
	buf_put_u32(b, m->version);
	buf_put_str(b, m->sid);
	buf_put_str(b, m->title);
	buf_put_u64(b, m->generation);
	buf_put_u32(b, flags);
	buf_put_str(b, m->path);
	buf_put_strv(b, m->argv);
	buf_put_strv(b, m->env);
	buf_put_str(b, m->cwd);
	buf_put_u32(b, m->uid);
	buf_put_u32(b, m->gid);
	buf_put_str(b, m->user);
	wire_put_size(b, &m->size);
	buf_put_u64(b, m->buffer_bytes);
	buf_put_u32(b, m->stop_grace_ms);
	buf_put_u32(b, m->rec_flush_ms);
	buf_put_u64(b, m->rec_min_free);
	buf_put_u64(b, m->rec_max_bytes);
	buf_put_u32(b, m->rec_index_ms);
	buf_put_u32(b, m->resize_policy);
	buf_put_u32(b, m->replay);
	buf_put_u32(b, m->scrollback_lines);
	buf_put_u64(b, m->scrollback_bytes);
	wire_put_detach_key(b, &m->detach_key);
	wire_put_answer(b, &m->answer);
	buf_put_str(b, m->term);
	if (flags & LAUNCH_LIMITS) {
		buf_put_u64(b, m->max_processes);
		buf_put_u64(b, m->max_data);
	}
}

int
wire_launch_decode(const void *p, size_t n, struct wire_launch *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_launch){ .version = reader_u32(&r) };
	reader_str_into(&r, out->sid, sizeof(out->sid));
	reader_str_into(&r, out->title, sizeof(out->title));
	out->generation = reader_u64(&r);
	out->flags = reader_u32(&r);
	out->path = reader_str(&r, WIRE_PATH_MAX);
	out->argv = reader_strv(&r, WIRE_ARGV_MAX, WIRE_COMMAND_MAX);
	out->env = reader_strv(&r, (size_t)2 * WIRE_ENV_MAX, WIRE_ENV_LEN_MAX);
	out->cwd = reader_str(&r, WIRE_PATH_MAX);
	out->uid = reader_u32(&r);
	out->gid = reader_u32(&r);
	reader_str_into(&r, out->user, sizeof(out->user));
	wire_get_size(&r, &out->size);
	out->buffer_bytes = reader_u64(&r);
	out->stop_grace_ms = reader_u32(&r);
	out->rec_flush_ms = reader_u32(&r);
	out->rec_min_free = reader_u64(&r);
	out->rec_max_bytes = reader_u64(&r);
	out->rec_index_ms = reader_u32(&r);
	out->resize_policy = reader_u32(&r);
	out->replay = reader_u32(&r);
	out->scrollback_lines = reader_u32(&r);
	out->scrollback_bytes = reader_u64(&r);
	wire_get_detach_key(&r, &out->detach_key);
	wire_get_answer(&r, &out->answer);
	reader_str_into(&r, out->term, sizeof(out->term));
	if (out->flags & LAUNCH_LIMITS) {
		out->max_processes = reader_u64(&r);
		out->max_data = reader_u64(&r);
	}
	if (!reader_done(&r) || !out->argv[0] ||
	    out->version < FRAME_VERSION_OLDEST ||
	    out->resize_policy > RESIZE_FIXED || out->replay > REPLAY_NONE) {
		wire_launch_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_launch_release(struct wire_launch *m)
{
	free(m->path);
	strv_free(m->argv);
	strv_free(m->env);
	free(m->cwd);
	*m = (struct wire_launch){ 0 };
}

void
wire_entry_encode(struct buf *b, const struct wire_entry *m)
{
	buf_put_u32(b, m->ns_flags);
	buf_put_u64(b, m->pids_max);
	buf_put_str(b, m->oom_path);
	buf_put_strv(b, m->cgroups);
}

int
wire_entry_decode(const void *p, size_t n, struct wire_entry *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_entry){ .ns_flags = reader_u32(&r) };
	out->pids_max = reader_u64(&r);
	out->oom_path = reader_str(&r, WIRE_PATH_MAX);
	out->cgroups = reader_strv(&r, WIRE_CGROUPS_MAX, WIRE_PATH_MAX);
	if (!reader_done(&r)) {
		wire_entry_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_entry_release(struct wire_entry *m)
{
	free(m->oom_path);
	strv_free(m->cgroups);
	*m = (struct wire_entry){ 0 };
}

void
wire_viewer_encode(struct buf *b, const struct wire_viewer *m, uint32_t version)
{
	buf_put_u64(b, m->attachment);
	buf_put_u32(b, m->flags);
	buf_put_u32(b, m->tail_lines);
	wire_put_size(b, &m->size);
	if (version < 2)
		return;
	buf_put_u32(b, m->version);
	buf_put_str(b, m->label);
	buf_put_str(b, m->notice);
	buf_put_str(b, m->identity);
}

int
wire_viewer_decode(
    const void *p, size_t n, uint32_t version, struct wire_viewer *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_viewer){ .attachment = reader_u64(&r) };
	out->flags = reader_u32(&r);
	out->tail_lines = reader_u32(&r);
	wire_get_size(&r, &out->size);
	out->version = version < 2 ? version : reader_u32(&r);
	if (version >= 2) {
		out->label = reader_str(&r, WIRE_LABEL_MAX);
		out->notice = reader_str(&r, WIRE_NOTICE_MAX);
		out->identity = reader_str(&r, WIRE_IDENTITY_MAX);
	}
	if (!reader_done(&r) || out->version < FRAME_VERSION_OLDEST) {
		wire_viewer_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_viewer_release(struct wire_viewer *m)
{
	free(m->label);
	free(m->notice);
	free(m->identity);
	*m = (struct wire_viewer){ 0 };
}

void
wire_left_encode(struct buf *b, const struct wire_left *m, uint32_t version)
{
	buf_put_u64(b, m->attachment);
	buf_put_u64(b, m->bytes_out);
	buf_put_u64(b, m->bytes_in);
	buf_put_u32(b, m->resyncs);
	if (version >= 2)
		buf_put_u64(b, m->left_ms);
}

int
wire_left_decode(
    const void *p, size_t n, uint32_t version, struct wire_left *out)
{
	struct reader r = reader_over(p, n);

	out->attachment = reader_u64(&r);
	out->bytes_out = reader_u64(&r);
	out->bytes_in = reader_u64(&r);
	out->resyncs = reader_u32(&r);
	out->left_ms = version >= 2 ? reader_u64(&r) : 0;
	return wire_done(&r);
}

void
wire_take_encode(struct buf *b, const struct wire_take *m)
{
	buf_put_u32(b, m->version);
	buf_put_u64(b, m->generation);
}

int
wire_take_decode(const void *p, size_t n, struct wire_take *out)
{
	struct reader r = reader_over(p, n);

	out->version = reader_u32(&r);
	out->generation = reader_u64(&r);
	return wire_done(&r);
}

static void
wire_put_stats(struct buf *b, const struct wire_stats *m)
{
	buf_put_u64(b, m->bytes_out);
	buf_put_u64(b, m->bytes_in);
	buf_put_u32(b, m->cols);
	buf_put_u32(b, m->rows);
	buf_put_u64(b, m->rec_bytes);
	buf_put_u64(b, m->rec_duration_ms);
	buf_put_u32(b, m->rec_gaps);
}

static void
wire_get_stats(struct reader *r, struct wire_stats *out)
{
	out->bytes_out = reader_u64(r);
	out->bytes_in = reader_u64(r);
	out->cols = reader_u32(r);
	out->rows = reader_u32(r);
	out->rec_bytes = reader_u64(r);
	out->rec_duration_ms = reader_u64(r);
	out->rec_gaps = reader_u32(r);
}

void
wire_stats_encode(struct buf *b, const struct wire_stats *m)
{
	wire_put_stats(b, m);
}

int
wire_stats_decode(const void *p, size_t n, struct wire_stats *out)
{
	struct reader r = reader_over(p, n);

	wire_get_stats(&r, out);
	return wire_done(&r);
}

void
wire_exited_encode(struct buf *b, const struct wire_exited *m)
{
	wire_put_exit(b, &m->exit);
	buf_put_u64(b, m->exited_ms);
	wire_put_stats(b, &m->stats);
	buf_put_u8(b, m->rec_state);
}

int
wire_exited_decode(const void *p, size_t n, struct wire_exited *out)
{
	struct reader r = reader_over(p, n);

	wire_get_exit(&r, &out->exit);
	out->exited_ms = reader_u64(&r);
	wire_get_stats(&r, &out->stats);
	out->rec_state = reader_u8(&r);
	if (out->rec_state > 2)
		return -EPROTO;
	return wire_done(&r);
}

void
wire_hello_encode(struct buf *b, const struct wire_hello *m)
{
	buf_put_u32(b, m->version);
	buf_put_str(b, m->sid);
	buf_put_u64(b, m->generation);
	buf_put_u8(b, m->state);
	buf_put_u32(b, m->pid);
	buf_put_u64(b, m->pid_start);
	wire_put_stats(b, &m->stats);
	buf_put_u32(b, m->n_viewers);
}

int
wire_hello_decode(const void *p, size_t n, struct wire_hello *out)
{
	struct reader r = reader_over(p, n);

	out->version = reader_u32(&r);
	reader_str_into(&r, out->sid, sizeof(out->sid));
	out->generation = reader_u64(&r);
	out->state = reader_u8(&r);
	out->pid = reader_u32(&r);
	out->pid_start = reader_u64(&r);
	wire_get_stats(&r, &out->stats);
	out->n_viewers = reader_u32(&r);
	if (out->state > STATE_EXITED)
		return -EPROTO;
	return wire_done(&r);
}

void
wire_auth_encode(struct buf *b, const struct wire_auth *m)
{
	buf_put_u8(b, m->method);
	buf_put_str(b, m->user);
	buf_put_str(b, m->key_type);
	buf_put_str(b, m->key_base64);
	buf_put_str(b, m->client_version);
}

int
wire_auth_decode(const void *p, size_t n, struct wire_auth *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_auth){ .method = reader_u8(&r) };
	reader_str_into(&r, out->user, sizeof(out->user));
	reader_str_into(&r, out->key_type, sizeof(out->key_type));
	out->key_base64 = reader_str(&r, WIRE_KEY_B64_MAX);
	reader_str_into(&r, out->client_version, sizeof(out->client_version));
	if (!reader_done(&r) || out->method > AUTH_KEY_PROVEN) {
		wire_auth_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_auth_release(struct wire_auth *m)
{
	free(m->key_base64);
	*m = (struct wire_auth){ 0 };
}

void
wire_run_encode(struct buf *b, const struct wire_run *m)
{
	buf_put_u8(b, m->kind);
	buf_put_u8(b, m->has_pty);
	buf_put_str(b, m->term);
	wire_put_size(b, &m->size);
	buf_put_strv(b, m->env);
	buf_put_str(b, m->command);
}

int
wire_run_decode(const void *p, size_t n, struct wire_run *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_run){ .kind = reader_u8(&r) };
	out->has_pty = reader_u8(&r);
	reader_str_into(&r, out->term, sizeof(out->term));
	wire_get_size(&r, &out->size);
	out->env = reader_strv(&r, WIRE_ENV_MAX, WIRE_ENV_LEN_MAX);
	out->command = reader_str(&r, WIRE_COMMAND_MAX);
	if (!reader_done(&r) || out->kind > RUN_SUBSYSTEM || out->has_pty > 1) {
		wire_run_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_run_release(struct wire_run *m)
{
	strv_free(m->env);
	free(m->command);
	*m = (struct wire_run){ 0 };
}

/* A port is a u32 on SSH's own wire too. */
static uint16_t
wire_get_port(struct reader *r)
{
	uint32_t port = reader_u32(r);

	if (port > UINT16_MAX)
		r->failed = true;
	return r->failed ? 0 : (uint16_t)port;
}

void
wire_forward_encode(struct buf *b, const struct wire_forward *m)
{
	buf_put_u32(b, m->id);
	buf_put_str(b, m->host);
	buf_put_u32(b, m->port);
	buf_put_str(b, m->origin);
	buf_put_u32(b, m->origin_port);
}

int
wire_forward_decode(const void *p, size_t n, struct wire_forward *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_forward){ .id = reader_u32(&r) };
	reader_str_into(&r, out->host, sizeof(out->host));
	out->port = wire_get_port(&r);
	reader_str_into(&r, out->origin, sizeof(out->origin));
	out->origin_port = reader_u32(&r);
	return wire_done(&r);
}

void
wire_listen_encode(struct buf *b, const struct wire_listen *m)
{
	buf_put_str(b, m->address);
	buf_put_u32(b, m->port);
}

int
wire_listen_decode(const void *p, size_t n, struct wire_listen *out)
{
	struct reader r = reader_over(p, n);

	reader_str_into(&r, out->address, sizeof(out->address));
	out->port = wire_get_port(&r);
	return wire_done(&r);
}

void
wire_forward_end_encode(struct buf *b, const struct wire_forward_end *m)
{
	buf_put_u32(b, m->id);
	buf_put_u64(b, m->bytes_in);
	buf_put_u64(b, m->bytes_out);
}

int
wire_forward_end_decode(const void *p, size_t n, struct wire_forward_end *out)
{
	struct reader r = reader_over(p, n);

	out->id = reader_u32(&r);
	out->bytes_in = reader_u64(&r);
	out->bytes_out = reader_u64(&r);
	return wire_done(&r);
}

void
wire_settings_encode(struct buf *b, const struct wire_settings *m)
{
	buf_put_u32(b, m->version);
	buf_put_str(b, m->conn_id);
	buf_put_str(b, m->remote_addr);
	buf_put_u32(b, m->login_grace_ms);
	buf_put_u32(b, m->keepalive_ms);
	buf_put_u32(b, m->keepalive_count);
	buf_put_u32(b, m->max_channels);
	buf_put_u64(b, m->rekey_bytes);
	buf_put_u8(b, m->log_level);
	buf_put_u8(b, m->log_json);
	buf_put_strv(b, m->host_keys);
}

int
wire_settings_decode(const void *p, size_t n, struct wire_settings *out)
{
	struct reader r = reader_over(p, n);

	*out = (struct wire_settings){ .version = reader_u32(&r) };
	reader_str_into(&r, out->conn_id, sizeof(out->conn_id));
	reader_str_into(&r, out->remote_addr, sizeof(out->remote_addr));
	out->login_grace_ms = reader_u32(&r);
	out->keepalive_ms = reader_u32(&r);
	out->keepalive_count = reader_u32(&r);
	out->max_channels = reader_u32(&r);
	out->rekey_bytes = reader_u64(&r);
	out->log_level = reader_u8(&r);
	out->log_json = reader_u8(&r);
	out->host_keys = reader_strv(&r, WIRE_HOST_KEYS, WIRE_KEY_PEM_MAX);
	if (!reader_done(&r) || !out->host_keys[0] ||
	    out->version < FRAME_VERSION_OLDEST) {
		wire_settings_release(out);
		return -EPROTO;
	}
	return 0;
}

void
wire_settings_release(struct wire_settings *m)
{
	for (char **k = m->host_keys; k && *k; k++)
		explicit_bzero(*k, strlen(*k));
	strv_free(m->host_keys);
	*m = (struct wire_settings){ 0 };
}
