/*
 * The option table as text: the values in force, the sample file, the manual's
 * list (berthd, and the build of the manual). What conf_show() prints loads
 * again to the same values.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "conf/options.h"
#include "conf/provider.h"
#include "conf/template.h"

/* Lists longer than this go on in indented lines; inih cuts at 200. */
#define SHOW_LINE_MAX 120
#define SHOW_HELP_MAX 76

/* Prints "[section]" before its first row; true if it did. */
static bool
show_section(const struct option *table, size_t i, FILE *out)
{
	if (i > 0 && strcmp(table[i - 1].section, table[i].section) == 0)
		return false;
	fprintf(out, "%s[%s]\n", i > 0 ? "\n" : "", table[i].section);
	return true;
}

static void
show_value(const struct option *o, const char *text, FILE *out)
{
	bool is_list = option_type(o->kind)->is_list;

	fprintf(out, "%s = ", o->name);
	if (!is_list || strlen(text) <= SHOW_LINE_MAX) {
		fprintf(out, "%s\n", text);
		return;
	}
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, ",");

		fprintf(out, "%s%.*s%s\n", p == text ? "" : "\t", (int)n, p,
		    p[n] ? "," : "");
		p += n + (p[n] ? 1 : 0);
	}
}

void
conf_show(const struct conf *c, FILE *out)
{
	size_t n;
	const struct option *table = options_all(&n);

	for (size_t i = 0; i < n; i++) {
		autofree char *text =
		    option_type(table[i].kind)->format(&table[i], c);

		show_section(table, i, out);
		show_value(&table[i], text, out);
	}
	templates_show(c, out);
	providers_show(c, out);
}

/* TEXT as comment lines, broken between words. */
static void
show_comment(const char *text, FILE *out)
{
	while (*text) {
		size_t n = strlen(text);

		if (n > SHOW_HELP_MAX) {
			n = SHOW_HELP_MAX;
			while (n > 0 && text[n] != ' ')
				n--;
		}
		fprintf(out, "# %.*s\n", (int)n, text);
		text += n;
		text += strspn(text, " ");
	}
}

void
conf_print_sample(FILE *out)
{
	size_t n;
	const struct option *table = options_all(&n);

	fputs("# The configuration of berthd, see berth.conf(5). Every option "
	      "is shown with\n"
	      "# its default. Sizes take k M G, times ms s m h d. Relative "
	      "paths start at\n"
	      "# the directory of this file; STATE is server.state_dir.\n\n",
	    out);
	for (size_t i = 0; i < n; i++) {
		if (!show_section(table, i, out))
			fputc('\n', out);
		show_comment(table[i].help, out);
		fprintf(out, "# (%s)\n", table[i].unit);
		/* A computed default is not what one would write there. */
		if (table[i].compute)
			fprintf(out, "# Default: %s\n", table[i].def);
		fprintf(out, "#%s =%s%s\n", table[i].name,
		    table[i].compute ? "" : " ",
		    table[i].compute ? "" : table[i].def);
	}
	fputs("\n# What sandboxes are made from, any number of sections.\n"
	      "# [template NAME]\n",
	    out);
	table = template_options(&n);
	for (size_t i = 0; i < n; i++) {
		show_comment(table[i].help, out);
		fprintf(out, "# (%s)\n# %s = %s\n", table[i].unit,
		    table[i].name, table[i].def);
	}
	providers_print_sample(out);
}

/* TEXT with what troff would read as its own written as characters. */
static void
show_troff(const char *text, FILE *out)
{
	for (const char *p = text; *p; p++) {
		if (*p == '\\')
			fputs("\\e", out);
		else if (*p == '-')
			fputs("\\-", out);
		else if (*p == '"')
			fputs("\\(dq", out);
		else
			fputc(*p, out);
	}
}

static void
show_manual(const struct option *table, size_t n, FILE *out)
{
	for (size_t i = 0; i < n; i++) {
		if (i == 0 ||
		    strcmp(table[i - 1].section, table[i].section) != 0)
			fprintf(out, ".SS \"[%s%s]\"\n", table[i].section,
			    strcmp(table[i].section, "template") ? ""
								 : " NAME");
		fprintf(out, ".TP\n.BR %s \" = ", table[i].name);
		show_troff(table[i].unit, out);
		fputs("\"\n", out);
		show_troff(table[i].help, out);
		fputs("\nDefault: ", out);
		show_troff(table[i].def, out);
		fputs(".\n", out);
	}
}

void
conf_print_manual(FILE *out)
{
	size_t n;
	const struct option *table = options_all(&n);

	show_manual(table, n, out);
	table = template_options(&n);
	show_manual(table, n, out);
	providers_print_manual(show_troff, out);
}
