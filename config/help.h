/* help.h - the table of settings in print. Pure. */
#ifndef LAUNCHD_CONFIG_HELP_H
#define LAUNCHD_CONFIG_HELP_H

struct text;

/* --help, in groups. */
void help_text(struct text *out);

/* The part of launchd(1) that lists the options, in mdoc(7). */
void help_man(struct text *out);

/* The part of launchd.conf(5) that lists the keys, a line each, in mdoc(7). */
void help_man_keys(struct text *out);

/* An INI file with every setting, its default and help as comments. */
void help_ini(struct text *out);

/* Completion script for bash or zsh. */
void help_bash(struct text *out);
void help_zsh(struct text *out);

#endif
