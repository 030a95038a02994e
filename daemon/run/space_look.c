/* space_look.c - see space_look.h */
#include "daemon/run/space_look.h"

#include "daemon/check/spaces.h"

enum { LIMIT_MS = 5000 };

struct spaces_found {
	struct helper_answer helper;
	struct disk_space at[SPACES];
};

static void space_look_work(struct helper *h)
{
	const struct space_look *l = h->owner;
	const char *dirs[SPACES];

	spaces_list(l->settings, l->env, dirs);
	spaces_read(dirs, ((struct spaces_found *)h->answer)->at);
}

static void on_looked(struct helper *h, bool succeeded)
{
	(void)h, (void)succeeded; /* what it had found stands there */
}

void space_look_start(struct space_look *l, uv_loop_t *loop, const struct settings *settings,
	const char *const *env, char **argv)
{
	*l = (struct space_look){
		.helper = { .work = space_look_work,
			.on_end = on_looked,
			.owner = l,
			.name = "space-look",
			.argv = argv,
			.lasting = true },
		.settings = settings,
		.env = env,
	};
	(void)helper_start(&l->helper, loop, sizeof(struct spaces_found), LIMIT_MS);
}

const struct disk_space *space_look_found(const struct space_look *l)
{
	return l->helper.answer ? ((const struct spaces_found *)l->helper.answer)->at : NULL;
}

void space_look_stop(struct space_look *l)
{
	helper_close(&l->helper);
}
