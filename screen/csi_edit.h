/*
 * Handlers of sequences that erase, insert, delete and scroll; only for the table
 * in csi.c and for esc.c. What comes in has the background of the pen.
 */
#ifndef SCREEN_CSI_EDIT_H
#define SCREEN_CSI_EDIT_H

struct parser;
struct screen;

/* ED and EL, and the two that leave protected cells. ED 3 forgets the history. */
void csi_ed(struct screen *s, const struct parser *p);
void csi_el(struct screen *s, const struct parser *p);
void csi_decsed(struct screen *s, const struct parser *p);
void csi_decsel(struct screen *s, const struct parser *p);

/* Cells from the cursor on: erased, inserted, deleted. */
void csi_ech(struct screen *s, const struct parser *p);
void csi_ich(struct screen *s, const struct parser *p);
void csi_dch(struct screen *s, const struct parser *p);

/* Lines from the cursor on; nothing outside of the margins. */
void csi_il(struct screen *s, const struct parser *p);
void csi_dl(struct screen *s, const struct parser *p);

/* All lines within the margins. SU at the very top fills the history. */
void csi_su(struct screen *s, const struct parser *p);
void csi_sd(struct screen *s, const struct parser *p);

/* Columns within the margins: from the left one, or from the cursor on. */
void csi_sl(struct screen *s, const struct parser *p);
void csi_sr(struct screen *s, const struct parser *p);
void csi_decic(struct screen *s, const struct parser *p);
void csi_decdc(struct screen *s, const struct parser *p);

/*
 * DECBI and DECFI, escape sequences: a column to the left or right; from the
 * margin there everything between the margins moves the other way.
 */
void csi_back_index(struct screen *s);
void csi_forward_index(struct screen *s);

#endif
