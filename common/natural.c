/* natural.c - see natural.h */
#include "common/natural.h"

#include <string.h>

static const char digits[] = "0123456789";

/* Two runs of digits as numbers; both are passed over. */
static int compare_numbers(const char **a, const char **b)
{
	size_t a_len, b_len;
	int order;

	*a += strspn(*a, "0");
	*b += strspn(*b, "0");
	a_len = strspn(*a, digits);
	b_len = strspn(*b, digits);
	order = a_len != b_len ? (a_len < b_len ? -1 : 1) : strncmp(*a, *b, a_len);
	*a += a_len;
	*b += b_len;
	return order;
}

int natural_compare(const char *a, const char *b)
{
	const char *x = a, *y = b;
	int order = 0;

	while (*x && *y && order == 0) {
		if (strchr(digits, *x) && strchr(digits, *y)) {
			order = compare_numbers(&x, &y);
			continue;
		}
		order = (unsigned char)*x - (unsigned char)*y;
		x++;
		y++;
	}
	if (order == 0)
		order = (unsigned char)*x - (unsigned char)*y;
	if (order == 0 && strlen(a) != strlen(b))
		order = strlen(a) < strlen(b) ? -1 : 1;
	return order == 0 ? strcmp(a, b) : order;
}
