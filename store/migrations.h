/* The numbered migrations, embedded by scripts/embed-sql. */
#ifndef STORE_MIGRATIONS_H
#define STORE_MIGRATIONS_H

extern const char *const store_migrations[];
extern const unsigned store_migrations_count;

#endif
