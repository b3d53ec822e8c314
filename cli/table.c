/* Tables for people; see table.h. */
#include "cli/table.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/text.h"

/* Longer text is cut: a table is for looking, --json for everything. */
#define TABLE_CELL_MAX 128

static void
table_format_time(json_int_t ms, char *out, size_t size)
{
	time_t t = (time_t)(ms / 1000);
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
	    strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		snprintf(out, size, "?");
}

static void
table_format_duration(json_int_t ms, char *out, size_t size)
{
	json_int_t s = ms / 1000;

	if (s >= 3600)
		snprintf(out, size, "%" JSON_INTEGER_FORMAT "h%02dm%02ds",
		    s / 3600, (int)(s / 60 % 60), (int)(s % 60));
	else if (s >= 60)
		snprintf(out, size, "%dm%02ds", (int)(s / 60), (int)(s % 60));
	else
		snprintf(out, size, "%d.%ds", (int)s, (int)(ms % 1000 / 100));
}

static void
table_format_bytes(json_int_t bytes, char *out, size_t size)
{
	static const char units[] = "kMGT";
	double v = (double)bytes;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(out, size, "%" JSON_INTEGER_FORMAT, bytes);
		return;
	}
	for (v /= 1024; v >= 1024 && i + 1 < strlen(units); i++)
		v /= 1024;
	snprintf(out, size, "%.1f%c", v, units[i]);
}

void
table_format(const json_t *value, enum column_kind kind, char *out, size_t size)
{
	json_int_t v = json_integer_value(value);

	if (json_is_string(value)) {
		text_escape(json_string_value(value), json_string_length(value),
		    out, size);
		if (!*out)
			snprintf(out, size, "-");
	} else if (json_is_boolean(value)) {
		snprintf(out, size, json_is_true(value) ? "yes" : "no");
	} else if (!json_is_integer(value)) {
		snprintf(out, size, "-");
	} else if (kind == COLUMN_TIME) {
		table_format_time(v, out, size);
	} else if (kind == COLUMN_DURATION) {
		table_format_duration(v, out, size);
	} else if (kind == COLUMN_BYTES) {
		table_format_bytes(v, out, size);
	} else {
		snprintf(out, size, "%" JSON_INTEGER_FORMAT, v);
	}
}

static void
table_print_cell(
    const char *text, int width, enum column_kind kind, bool is_last, FILE *out)
{
	bool is_right = kind == COLUMN_NUMBER || kind == COLUMN_BYTES ||
			kind == COLUMN_DURATION;

	if (is_right)
		fprintf(out, "%*s", width, text);
	else if (is_last)
		fputs(text, out);
	else
		fprintf(out, "%-*s", width, text);
	fputs(is_last ? "\n" : "  ", out);
}

void
table_print(
    const json_t *rows, const struct column *columns, size_t n, FILE *out)
{
	autofree int *widths = xcalloc(n, sizeof(*widths));
	char cell[TABLE_CELL_MAX];
	size_t i;
	json_t *row;

	if (json_array_size(rows) == 0)
		return;
	for (size_t k = 0; k < n; k++)
		widths[k] = (int)strlen(columns[k].title);
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++) {
			table_format(json_object_get(row, columns[k].key),
			    columns[k].kind, cell, sizeof(cell));
			if ((int)strlen(cell) > widths[k])
				widths[k] = (int)strlen(cell);
		}
	}
	for (size_t k = 0; k < n; k++)
		table_print_cell(columns[k].title, widths[k], columns[k].kind,
		    k + 1 == n, out);
	json_array_foreach(rows, i, row)
	{
		for (size_t k = 0; k < n; k++) {
			table_format(json_object_get(row, columns[k].key),
			    columns[k].kind, cell, sizeof(cell));
			table_print_cell(
			    cell, widths[k], columns[k].kind, k + 1 == n, out);
		}
	}
}

void
table_print_json(const json_t *value, FILE *out)
{
	json_dumpf(value, out, JSON_INDENT(2) | JSON_ENSURE_ASCII);
	fputc('\n', out);
}
