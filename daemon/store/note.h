/* note.h - what the store tells its owner, and what its files share; between the files of store.h.
 */
#ifndef LAUNCHD_DAEMON_STORE_NOTE_H
#define LAUNCHD_DAEMON_STORE_NOTE_H

struct client;
struct store;

enum { NOTES_MAX = 32 }; /* of one attempt */

/* One sentence to the owner; beyond NOTES_MAX only that there are more. */
__attribute__((format(printf, 2, 3))) void note(struct store *s, const char *fmt, ...);

/* That a client's connection is closed, and why. */
void note_client(struct client *c, const char *why);

/* One of its handles is closed. */
void store_handle_closed(struct store *s);

#endif
