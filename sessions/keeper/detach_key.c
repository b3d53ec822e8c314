/*
 * The detach key; see detach_key.h. Bytes are cut into tokens, a key each: the
 * present one is in `seq` for reading; what of it may not go on yet is in
 * `held`, behind the first of two keys. A lone ESC goes on at once: it is a key
 * of its own, and to a program before the rest of a sequence it is just that.
 */
#include "sessions/keeper/detach_key.h"

#include <string.h>

#include "base/mem.h"
#include "sessions/wire/messages.h"

#define DETACH_KEY_ESC 0x1b

enum detach_key_state {
	DETACH_KEY_GROUND,
	DETACH_KEY_ESCAPE,
	DETACH_KEY_CSI,
	DETACH_KEY_SKIP /* a CSI that is none of ours, until its end */
};

/* What a token is to us. */
enum detach_key_token {
	TOKEN_OTHER,  /* a key like any other, or several */
	TOKEN_FIRST,  /* the first key, or the only one */
	TOKEN_SECOND, /* the second one, after the first */
	TOKEN_SILENT, /* a release, or a modifier: it presses nothing */
	TOKEN_NO_KEY, /* the mouse moves, the focus changes */
	TOKEN_PASTE   /* a bracketed paste begins */
};

/* Modifiers of kitty and xterm, less one. */
#define MODS_SHIFT 1U
#define MODS_CTRL  4U
#define MODS_LOCKS (64U | 128U)

static const char detach_key_paste[] = "\033[200~";
static const char detach_key_paste_end[] = "\033[201~";

void
detach_key_init(struct detach_key_scan *s, const struct wire_detach_key *keys)
{
	*s = (struct detach_key_scan){ .keys = keys };
}

/* ---- keys ------------------------------------------------------------------ */

/* A key as a sequence spells it. */
struct detach_key_seen {
	uint32_t ch;      /* the key's character without any modifier */
	uint32_t shifted; /* what it gives with shift, 0 = not said */
	uint32_t base;    /* the key at its place on a US keyboard, or 0 */
	uint32_t text;    /* what it types, or 0 */
	uint32_t mods;    /* MODS_* but the locks */
};

/* The byte that a terminal sends for KEY of old. */
static uint8_t
detach_key_byte(const struct wire_key *key)
{
	return (uint8_t)(key->is_ctrl ? key->ch & 0x1f : key->ch);
}

/* True if C with shift is UPPER on the keyboard that is most likely. */
static bool
detach_key_shifts(uint32_t c, uint32_t upper)
{
	static const char pairs[] = "2@6^-_[{\\|]}=+;:'\",<.>/?`~1!3#4$5%7&8*9("
				    "0)";

	if (c >= 'a' && c <= 'z')
		return upper == c - 0x20;
	for (const char *p = pairs; *p; p += 2) {
		if (c == (uint32_t)p[0] && upper == (uint32_t)p[1])
			return true;
	}
	return false;
}

static bool
detach_key_is_letter(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
detach_key_equals(const struct detach_key_seen *k, const struct wire_key *want)
{
	bool has_shift = (k->mods & MODS_SHIFT) != 0;

	if ((k->mods & ~MODS_SHIFT) != (want->is_ctrl ? MODS_CTRL : 0))
		return false;
	if (k->text && !want->is_ctrl)
		return k->text == want->ch;
	/* Ctrl-Shift-A is another key than Ctrl-A; Ctrl-_ is made with shift */
	if (!has_shift || (want->is_ctrl && !detach_key_is_letter(want->ch))) {
		if (k->ch == want->ch)
			return true;
		if (!has_shift && k->base == want->ch)
			return true;
	}
	if (want->is_ctrl && want->ch == '@' && k->ch == ' ')
		return true;
	if (!has_shift || (want->is_ctrl && detach_key_is_letter(want->ch)))
		return false;
	if (k->shifted)
		return k->shifted == want->ch;
	return k->ch == want->ch || detach_key_shifts(k->ch, want->ch);
}

/* FIRST, SECOND or OTHER. */
static enum detach_key_token
detach_key_which(
    const struct detach_key_scan *s, const struct detach_key_seen *k)
{
	if (s->is_armed && detach_key_equals(k, &s->keys->keys[1]))
		return TOKEN_SECOND;
	return detach_key_equals(k, &s->keys->keys[0]) ? TOKEN_FIRST
						       : TOKEN_OTHER;
}

/* The same for a byte that is a whole key. */
static enum detach_key_token
detach_key_which_byte(const struct detach_key_scan *s, uint8_t c)
{
	if (s->is_armed && c == detach_key_byte(&s->keys->keys[1]))
		return TOKEN_SECOND;
	return c == detach_key_byte(&s->keys->keys[0]) ? TOKEN_FIRST
						       : TOKEN_OTHER;
}

/* ---- sequences ------------------------------------------------------------- */

#define PARAMS_MAX 6
#define SUBS_MAX   3

/* The numbers of a CSI: parameters by `;`, their parts by `:`. */
struct detach_key_params {
	uint32_t v[PARAMS_MAX][SUBS_MAX];
	unsigned n;
};

/* Reads the N bytes of P; false if they are not numbers. */
static bool
detach_key_read(const uint8_t *p, size_t n, struct detach_key_params *out)
{
	unsigned at = 0, sub = 0;

	*out = (struct detach_key_params){ .n = 1 };
	for (size_t i = 0; i < n; i++) {
		if (p[i] == ';') {
			at++;
			sub = 0;
			if (at == PARAMS_MAX)
				return false;
			out->n = at + 1;
		} else if (p[i] == ':') {
			sub++;
		} else if (p[i] < '0' || p[i] > '9') {
			return false;
		} else if (sub < SUBS_MAX) {
			uint32_t *v = &out->v[at][sub];

			*v = *v > 0x10ffff ? *v : *v * 10 + (p[i] - '0');
		}
	}
	return true;
}

static uint32_t
detach_key_mods(uint32_t param)
{
	return (param ? param - 1 : 0) & ~MODS_LOCKS;
}

/* CSI key:shifted:base ; mods:event ; text u. */
static enum detach_key_token
detach_key_kitty(
    const struct detach_key_scan *s, const struct detach_key_params *p)
{
	struct detach_key_seen k = {
		.ch = p->v[0][0],
		.shifted = p->v[0][1],
		.base = p->v[0][2],
		.text = p->v[2][0],
		.mods = detach_key_mods(p->v[1][0]),
	};

	/* Releases; locks, shift, ctrl and their kin. */
	if (p->v[1][1] == 3 || (k.ch >= 57358 && k.ch <= 57360) ||
	    (k.ch >= 57441 && k.ch <= 57454))
		return TOKEN_SILENT;
	return detach_key_which(s, &k);
}

/* CSI 27 ; mods ; character ~: with shift it is the shifted one. */
static enum detach_key_token
detach_key_other_keys(
    const struct detach_key_scan *s, const struct detach_key_params *p)
{
	struct detach_key_seen k = {
		.ch = p->v[2][0],
		.shifted = p->v[2][0],
		.mods = detach_key_mods(p->v[1][0]),
	};

	return detach_key_which(s, &k);
}

/* CSI key ; scan code ; character ; is down ; state ; repeats _. */
static enum detach_key_token
detach_key_windows(
    const struct detach_key_scan *s, const struct detach_key_params *p)
{
	uint32_t key = p->v[0][0], ch = p->v[2][0], down = p->v[3][0];
	bool is_modifier = (key >= 16 && key <= 18) || key == 20 || key == 144;

	if (!down || is_modifier)
		return TOKEN_SILENT;
	/* Ctrl-@ and a key without a character look alike: 0. */
	if (ch > 0x7f || (ch == 0 && key != ' ' && key != '2'))
		return TOKEN_OTHER;
	return detach_key_which_byte(s, (uint8_t)ch);
}

/* The whole sequence in `seq`. */
static enum detach_key_token
detach_key_sequence(const struct detach_key_scan *s)
{
	const uint8_t *p = s->seq + 2;
	size_t n = s->n_seq - 3U;
	uint8_t final = s->seq[s->n_seq - 1];
	struct detach_key_params params;

	if (s->n_seq == strlen(detach_key_paste) &&
	    memcmp(s->seq, detach_key_paste, s->n_seq) == 0)
		return TOKEN_PASTE;
	if (n == 0 && (final == 'I' || final == 'O'))
		return TOKEN_NO_KEY;
	if (n && p[0] == '<' && detach_key_read(p + 1, n - 1, &params))
		return final == 'm' || (params.v[0][0] & 32) ? TOKEN_NO_KEY
							     : TOKEN_OTHER;
	if (!n || !detach_key_read(p, n, &params))
		return TOKEN_OTHER;
	if (final == 'u')
		return detach_key_kitty(s, &params);
	if (final == '~' && params.n == 3 && params.v[0][0] == 27)
		return detach_key_other_keys(s, &params);
	if (final == '_' && params.n >= 4)
		return detach_key_windows(s, &params);
	/* Arrows and their kin: an event type says that one was let go. */
	return params.v[1][1] == 3 ? TOKEN_SILENT : TOKEN_OTHER;
}

/* ---- bytes ----------------------------------------------------------------- */

/* The first N bytes that are held go on, the rest is forgotten. */
static bool
detach_key_give(
    struct detach_key_scan *s, size_t n, struct detach_key_step *out)
{
	out->p = s->held;
	out->n = n;
	s->n_held = 0;
	s->is_armed = false;
	return true;
}

static bool
detach_key_press(struct detach_key_scan *s, struct detach_key_step *out)
{
	detach_key_init(s, s->keys);
	out->is_pressed = true;
	return true;
}

/* The last token waits behind the first key, so that the order stays. */
static bool
detach_key_keep(struct detach_key_scan *s, struct detach_key_step *out)
{
	/* The next one needs room. */
	if (s->n_held <= sizeof(s->held) - sizeof(s->seq))
		return false;
	return detach_key_give(s, s->n_held, out);
}

/* The token at the end of `held` is whole; true if OUT has something to say. */
static bool
detach_key_act(struct detach_key_scan *s, enum detach_key_token token,
    struct detach_key_step *out)
{
	size_t n = s->n_held;

	switch (token) {
	case TOKEN_SECOND:
		return detach_key_press(s, out);
	case TOKEN_FIRST:
		if (s->keys->n == 1)
			return detach_key_press(s, out);
		if (s->is_armed) /* twice: the program gets it once */
			return detach_key_give(s, s->token_at, out);
		s->is_armed = true;
		return false;
	case TOKEN_NO_KEY:
		/* Not into a first key whose ESC went on already. */
		if (s->is_armed && s->held[0] == '[')
			return detach_key_keep(s, out);
		out->p = s->held + s->token_at;
		out->n = n - s->token_at;
		s->n_held = s->token_at;
		return true;
	case TOKEN_SILENT:
		if (s->is_armed)
			return detach_key_keep(s, out);
		break;
	case TOKEN_PASTE:
		s->is_pasting = true;
		s->paste_at = 0;
		return detach_key_give(s, n, out);
	case TOKEN_OTHER:
		break;
	}
	return detach_key_give(s, n, out);
}

/* One byte of a sequence from its `[` on. */
static bool
detach_key_csi(
    struct detach_key_scan *s, uint8_t c, struct detach_key_step *out)
{
	bool is_number = (c >= '0' && c <= '9') || c == ':' || c == ';';

	s->seq[s->n_seq++] = c;
	if (c >= '@' && c <= '~') {
		s->state = DETACH_KEY_GROUND;
		return detach_key_act(s, detach_key_sequence(s), out);
	}
	if (s->n_seq < sizeof(s->seq) && (is_number || s->is_armed))
		return false;
	s->state = DETACH_KEY_SKIP;
	return detach_key_give(s, s->n_held, out);
}

/* The byte C; without *IS_USED it has to come again. True as above. */
static bool
detach_key_take(struct detach_key_scan *s, uint8_t c, bool *is_used,
    struct detach_key_step *out)
{
	*is_used = c >= ' ' || s->state == DETACH_KEY_GROUND;
	if (!*is_used) {
		/* Nothing that a terminal sends has controls inside. */
		bool is_lone = s->state == DETACH_KEY_ESCAPE;

		s->state = DETACH_KEY_GROUND;
		return detach_key_act(s,
		    is_lone ? detach_key_which_byte(s, DETACH_KEY_ESC)
			    : TOKEN_OTHER,
		    out);
	}
	if (s->state == DETACH_KEY_GROUND)
		s->token_at = s->n_held;
	s->held[s->n_held++] = c;
	if (s->state == DETACH_KEY_CSI)
		return detach_key_csi(s, c, out);
	if (c == DETACH_KEY_ESC ||
	    (s->state == DETACH_KEY_ESCAPE && c == '[')) {
		s->state = c == '[' ? DETACH_KEY_CSI : DETACH_KEY_ESCAPE;
		s->seq[c == '[' ? 1 : 0] = c;
		s->n_seq = c == '[' ? 2 : 1;
		return false;
	}
	if (s->state == DETACH_KEY_GROUND)
		return detach_key_act(s, detach_key_which_byte(s, c), out);
	s->state = DETACH_KEY_GROUND; /* Alt and a key */
	return detach_key_act(s, TOKEN_OTHER, out);
}

/* ---- pieces ---------------------------------------------------------------- */

/* How much of a paste is in P; its end included. */
static size_t
detach_key_in_paste(struct detach_key_scan *s, const uint8_t *p, size_t n)
{
	const size_t len = strlen(detach_key_paste_end);

	for (size_t i = 0; i < n; i++) {
		if (p[i] == (uint8_t)detach_key_paste_end[s->paste_at])
			s->paste_at++;
		else
			s->paste_at = p[i] == DETACH_KEY_ESC ? 1 : 0;
		if (s->paste_at == len) {
			s->is_pasting = false;
			return i + 1;
		}
	}
	return n;
}

/* How much of P belongs to a sequence that is none of ours. */
static size_t
detach_key_in_skip(struct detach_key_scan *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_final = p[i] >= '@' && p[i] <= '~';

		if (is_final || p[i] < ' ') {
			s->state = DETACH_KEY_GROUND;
			return i + (is_final ? 1 : 0);
		}
	}
	return n;
}

/* How much of P can be neither a key of ours nor the beginning of one. */
static size_t
detach_key_plain(const struct detach_key_scan *s, const uint8_t *p, size_t n)
{
	uint8_t first = detach_key_byte(&s->keys->keys[0]);
	size_t i = 0;

	while (i < n && p[i] != DETACH_KEY_ESC && p[i] != first)
		i++;
	return i;
}

void
detach_key_step(struct detach_key_scan *s, const void *input, size_t n,
    struct detach_key_step *out)
{
	const uint8_t *p = input;
	size_t pass = 0;

	if (s->keys->n == 0)
		pass = n;
	else if (s->is_pasting)
		pass = detach_key_in_paste(s, p, n);
	else if (s->state == DETACH_KEY_SKIP)
		pass = detach_key_in_skip(s, p, n);
	else if (s->state == DETACH_KEY_GROUND && !s->is_armed)
		pass = detach_key_plain(s, p, n);
	*out = (struct detach_key_step){ .used = pass, .p = p, .n = pass };
	while (!pass && out->used < n) {
		bool is_used, is_ready;

		is_ready = detach_key_take(s, p[out->used], &is_used, out);
		out->used += is_used;
		if (is_ready)
			return;
	}
	/* A lone ESC is a key of its own. */
	if (!pass && s->state == DETACH_KEY_ESCAPE) {
		if (!s->is_armed)
			detach_key_give(s, s->n_held, out);
		else if (detach_key_which_byte(s, DETACH_KEY_ESC) ==
			 TOKEN_SECOND)
			detach_key_press(s, out);
	}
}

enum detach_key_wait
detach_key_waits(const struct detach_key_scan *s)
{
	if (s->is_armed)
		return DETACH_KEY_HOLDS_FIRST;
	return s->n_held ? DETACH_KEY_HOLDS_PART : DETACH_KEY_HOLDS_NONE;
}

size_t
detach_key_flush(struct detach_key_scan *s, const uint8_t **p_out)
{
	size_t n = s->n_held;

	*p_out = s->held;
	s->n_held = 0;
	s->is_armed = false;
	if (!s->is_pasting && s->state != DETACH_KEY_SKIP)
		s->state = DETACH_KEY_GROUND;
	return n;
}
