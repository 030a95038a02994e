/* gpus_here.c - see gpus_here.h */
#include "daemon/blackbox/gpus_here.h"

#include <unistd.h>

bool gpus_here(void)
{
	return access("/dev/nvidiactl", F_OK) == 0;
}
