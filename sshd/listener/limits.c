/* Counting connections; see limits.h. Runs in berthd. */
#include "sshd/listener/limits.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* An address with connections that are not authenticated yet. */
struct limits_source {
	struct list node;
	uint8_t addr[16]; /* IPv6, or ::ffff:a.b.c.d */
	uint64_t count;
};

void
limits_init(struct limits *l, const struct limits_max *max)
{
	*l = (struct limits){ .max = *max };
	list_init(&l->sources);
}

void
limits_release(struct limits *l)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &l->sources) {
		list_remove(pos);
		free(list_entry(pos, struct limits_source, node));
	}
}

void
limits_set(struct limits *l, const struct limits_max *max)
{
	l->max = *max;
}

static void
limits_key(const struct sockaddr *sa, uint8_t out[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memset(out, 0, 16);
	if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		memcpy(out, &in6.sin6_addr, 16);
	} else if (sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		memcpy(out, mapped, sizeof(mapped));
		memcpy(out + 12, &in.sin_addr, 4);
	}
}

/* There are never more sources than startups, so a walk is quick enough. */
static struct limits_source *
limits_find(struct limits *l, const uint8_t key[16])
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &l->sources) {
		struct limits_source *s =
		    list_entry(pos, struct limits_source, node);

		if (memcmp(s->addr, key, 16) == 0)
			return s;
	}
	return NULL;
}

/* From nobody at half of the limit to everybody at the limit. */
static bool
limits_is_unlucky(const struct limits *l, uint32_t dice)
{
	uint64_t max = l->max.startups, begin = max / 2;

	if (l->startups >= max)
		return true;
	if (l->startups < begin || max == begin)
		return false;
	return dice % (max - begin) < l->startups - begin;
}

/* S is what limits_find() found for KEY. */
static void
limits_count(struct limits *l, struct limits_source *s, const uint8_t key[16],
    struct limits_slot *slot)
{
	if (!s) {
		s = xcalloc(1, sizeof(*s));
		memcpy(s->addr, key, 16);
		list_append(&l->sources, &s->node);
	}
	s->count++;
	l->total++;
	l->startups++;
	*slot = (struct limits_slot){ .source = s, .is_counted = true };
}

enum limits_verdict
limits_enter(struct limits *l, const struct sockaddr *sa, uint32_t dice,
    struct limits_slot *slot)
{
	struct limits_source *s;
	uint8_t key[16];

	limits_key(sa, key);
	s = limits_find(l, key);
	if (l->total >= l->max.total)
		return LIMITS_TOTAL;
	if (s ? s->count >= l->max.per_source : l->max.per_source == 0)
		return LIMITS_SOURCE;
	if (limits_is_unlucky(l, dice))
		return LIMITS_STARTUPS;
	limits_count(l, s, key, slot);
	return LIMITS_ADMIT;
}

void
limits_restore(struct limits *l, const char *address, struct limits_slot *slot)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };
	char text[INET6_ADDRSTRLEN];
	uint8_t key[16] = { 0 };

	/* A link-local one has its zone behind it, which no key has. */
	snprintf(
	    text, sizeof(text), "%.*s", (int)strcspn(address, "%"), address);
	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		limits_key((struct sockaddr *)&in, key);
	else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
		limits_key((struct sockaddr *)&in6, key);
	limits_count(l, limits_find(l, key), key, slot);
}

void
limits_authenticated(struct limits *l, struct limits_slot *slot)
{
	struct limits_source *s = take_ptr(slot->source);

	if (!s)
		return;
	assert(s->count > 0 && l->startups > 0);
	l->startups--;
	if (--s->count == 0) {
		list_remove(&s->node);
		free(s);
	}
}

void
limits_leave(struct limits *l, struct limits_slot *slot)
{
	limits_authenticated(l, slot);
	if (!slot->is_counted)
		return;
	assert(l->total > 0);
	l->total--;
	slot->is_counted = false;
}

const char *
limits_verdict_name(enum limits_verdict v)
{
	static const char *const names[] = {
		[LIMITS_ADMIT] = "admitted",
		[LIMITS_TOTAL] = "max_connections",
		[LIMITS_STARTUPS] = "max_startups",
		[LIMITS_SOURCE] = "max_per_source",
	};

	return names[v];
}
