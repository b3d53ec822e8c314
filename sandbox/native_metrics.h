/* What a native sandbox uses. Reads /proc, so in berth-sandbox alone. */
#ifndef SANDBOX_NATIVE_METRICS_H
#define SANDBOX_NATIVE_METRICS_H

struct native_record;
struct sandbox_metrics;

/* Fills OUT: from its control groups, else from /proc; -1 for the unknown. */
void native_metrics(const struct native_record *r, struct sandbox_metrics *out);

#endif
