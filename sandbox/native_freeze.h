/* Suspending a native sandbox; for the table of native.c. In berth-sandbox. */
#ifndef SANDBOX_NATIVE_FREEZE_H
#define SANDBOX_NATIVE_FREEZE_H

struct err;
struct native_record;
struct sandbox_spec;

/*
 * Stops every process of the sandbox where it is, and lets them go on. Already
 * so is success. -EOPNOTSUPP where no group of it can do that, -ETIMEDOUT when
 * they do not stop, and then they all go on.
 */
int native_suspend(const struct sandbox_spec *s, struct err *e);
int native_resume(const struct sandbox_spec *s, struct err *e);

/* The second, for whoever has its lock and its record R. */
int native_thaw(
    const struct sandbox_spec *s, const struct native_record *r, struct err *e);

#endif
