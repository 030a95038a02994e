/* boxed.c - boxed COMMAND...: with the capabilities and system calls that Docker leaves root by
 * default.
 *
 * Its profile allows what it lists; this one forbids what the kernel would let root's capabilities
 * do and the list lacks, with the errors of the profile. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const int kept[] = { CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FSETID, CAP_FOWNER, CAP_MKNOD,
	CAP_NET_RAW, CAP_SETGID, CAP_SETUID, CAP_SETFCAP, CAP_SETPCAP, CAP_NET_BIND_SERVICE,
	CAP_SYS_CHROOT, CAP_KILL, CAP_AUDIT_WRITE };

static const unsigned forbidden[] = { SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime,
	SYS_clock_settime, SYS_delete_module, SYS_fanotify_init, SYS_finit_module, SYS_fsconfig,
	SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_mempolicy, SYS_init_module, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_io_uring_setup, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie,
	SYS_mbind, SYS_mount, SYS_mount_setattr, SYS_move_mount, SYS_move_pages, SYS_nfsservctl,
	SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pivot_root, SYS_quotactl,
	SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_setdomainname, SYS_sethostname,
	SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare,
	SYS_userfaultfd, SYS_vhangup };

/* clone(2) with one of these; clone3(2), whose flags a filter can't see, is "not there". */
enum {
	SPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
		CLONE_NEWPID | CLONE_NEWNET
};

static int set_capabilities(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct sets[2] = { { 0 } };

	for (size_t i = 0; i < COUNT(kept); i++)
		sets[kept[i] / 32].permitted |= 1u << kept[i] % 32;
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (!(sets[cap / 32].permitted & 1u << cap % 32) && prctl(PR_CAPBSET_DROP, cap) < 0)
			return -errno;
	for (size_t i = 0; i < COUNT(sets); i++)
		sets[i].effective = sets[i].permitted;
	return syscall(SYS_capset, &head, sets) < 0 ? -errno : 0;
}

#define LOAD(member) \
	(struct sock_filter) BPF_STMT( \
		BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, member))
#define RETURN(value) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, (value))
#define UNLESS_SKIP(test, value, skip) \
	(struct sock_filter) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), 0, (skip))

/* Needs no arch to be looked at: whoever calls by another one's numbers is no test of ours. */
static int set_filter(void)
{
	struct sock_filter code[2 * COUNT(forbidden) + 8];
	struct sock_fprog program = { 0, code };

	code[program.len++] = LOAD(nr);
	for (size_t i = 0; i < COUNT(forbidden); i++) {
		code[program.len++] = UNLESS_SKIP(BPF_JEQ, forbidden[i], 1);
		code[program.len++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
	}
	code[program.len++] = UNLESS_SKIP(BPF_JEQ, SYS_clone3, 1);
	code[program.len++] = RETURN(SECCOMP_RET_ERRNO | ENOSYS);
	code[program.len++] = UNLESS_SKIP(BPF_JEQ, SYS_clone, 3);
	code[program.len++] = LOAD(args[0]);
	code[program.len++] = UNLESS_SKIP(BPF_JSET, (unsigned)SPACES, 1);
	code[program.len++] = RETURN(SECCOMP_RET_ERRNO | EPERM);
	code[program.len++] = RETURN(SECCOMP_RET_ALLOW);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

int main(int argc, char **argv)
{
	int rc;

	if (argc < 2)
		return 2;
	rc = set_filter(); /* first: it is for CAP_SYS_ADMIN, or needs no_new_privs, which ends
			      setuid */
	if (rc == 0)
		rc = set_capabilities();
	if (rc == 0) {
		(void)execvp(argv[1], argv + 1);
		rc = -errno;
	}
	(void)fprintf(stderr, "boxed: %s: %s\n", argv[1], strerror(-rc));
	return 126;
}
