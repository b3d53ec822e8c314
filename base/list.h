/*
 * An intrusive doubly linked list: the node lives in its owner, so that
 * linking never allocates and unlinking is O(1). A list head is a node that
 * points at itself.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/mem.h"

struct list {
	struct list *next, *prev;
};

/* Makes HEAD an empty list, or NODE an unlinked node. */
static inline void
list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline int
list_empty(const struct list *head)
{
	return head->next == head;
}

/* Links NODE in as the last of HEAD. NODE must not be linked. */
static inline void __attribute__((nonnull))
list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Unlinks NODE; harmless when it is not linked. */
static inline void
list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define list_entry(node, type, member) container_of(node, type, member)

/*
 * Walks HEAD: POS is a struct list *, NEXT a spare one, so that the body may
 * remove POS (and only POS) from the list.
 */
#define list_for_each(pos, tmp, head)                                    \
	for ((pos) = (head)->next, (tmp) = (pos)->next; (pos) != (head); \
	     (pos) = (tmp), (tmp) = (pos)->next)

#endif
