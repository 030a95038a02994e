/* goodput_json.h - what became of the job's time, for --report and --events. Pure. */
#ifndef LAUNCHD_DAEMON_REPORT_GOODPUT_JSON_H
#define LAUNCHD_DAEMON_REPORT_GOODPUT_JSON_H

struct goodput;
struct json;

/* "goodput": null where no attempt has ended, or g is NULL. */
void json_goodput(struct json *j, const struct goodput *g);

#endif
