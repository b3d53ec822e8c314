/*
 * Finds the detach key in what a viewer types, however its terminal spells it:
 * as a control byte, in kitty's keyboard protocol, by xterm's modifyOtherKeys,
 * or in Windows' input mode. Two keys are found one after the other: the first
 * is held back until the next one. Never looks inside a bracketed paste, and
 * holds back nothing else but the pieces of one sequence. In the keeper; pure.
 */
#ifndef SESSIONS_KEEPER_DETACH_KEY_H
#define SESSIONS_KEEPER_DETACH_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_detach_key;

/* The longest spelling of a key that is read as one. */
#define DETACH_KEY_SEQ_MAX 48

/* The first key, what its release sends, and the next key. */
#define DETACH_KEY_HELD_MAX 192

/* What a viewer has typed so far; detach_key_init() begins it. */
struct detach_key_scan {
	const struct wire_detach_key *keys; /* borrowed */
	uint8_t state;
	bool is_armed; /* the first of two keys is pressed */
	bool is_pasting;
	uint8_t paste_at; /* bytes of the end of a paste seen */
	uint8_t n_seq;
	uint8_t seq[DETACH_KEY_SEQ_MAX]; /* the present sequence from ESC on */
	uint8_t n_held, token_at;        /* where the present token begins */
	uint8_t held[DETACH_KEY_HELD_MAX];
};

/* What one step found. */
struct detach_key_step {
	size_t used;      /* bytes of the input that are dealt with; may be 0 */
	const uint8_t *p; /* these go on to the program; valid until the next */
	size_t n;         /* call and as long as the input is */
	bool is_pressed;  /* the viewer leaves; what is behind is not for us */
};

/* KEYS is borrowed and must outlive S; with none of them all passes. */
void detach_key_init(
    struct detach_key_scan *s, const struct wire_detach_key *keys);

/*
 * Looks at the N > 0 bytes of INPUT, the next that the viewer typed. Call it
 * with the rest until all is used or the key is pressed.
 */
void detach_key_step(struct detach_key_scan *s, const void *input, size_t n,
    struct detach_key_step *out);

enum detach_key_wait {
	DETACH_KEY_HOLDS_NONE,
	DETACH_KEY_HOLDS_PART, /* of a sequence: the rest is due at once */
	DETACH_KEY_HOLDS_FIRST /* of two keys */
};

/* What is held back now, and for what. */
enum detach_key_wait detach_key_waits(const struct detach_key_scan *s);

/*
 * It took too long: what is held back goes on as it is and S begins anew.
 * Returns how many bytes, *P_OUT says where; valid until the next call.
 */
size_t detach_key_flush(struct detach_key_scan *s, const uint8_t **p_out);

#endif
