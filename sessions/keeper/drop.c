/* Giving up root; see drop.h. */
#include "sessions/keeper/drop.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/syscalls.h"

#define DROP_USER "berth"

/*
 * Never for a keeper: what looks into other processes, runs programs, changes
 * what the system is, or is a large piece of kernel behind one call. The first
 * part ends it, for only an intruder calls that; libraries may try the rest.
 */
static const struct syscalls_rule drop_rules[] = {
	{ SYS_ptrace, SYSCALLS_KILL },
	{ SYS_process_vm_readv, SYSCALLS_KILL },
	{ SYS_process_vm_writev, SYSCALLS_KILL },
#ifdef SYS_pidfd_getfd
	{ SYS_pidfd_getfd, SYSCALLS_KILL },
#endif
#ifdef SYS_process_madvise
	{ SYS_process_madvise, SYSCALLS_KILL },
#endif
	{ SYS_kcmp, SYSCALLS_KILL },
	{ SYS_execve, SYSCALLS_KILL },
	{ SYS_execveat, SYSCALLS_KILL },
	{ SYS_mount, SYSCALLS_KILL },
	{ SYS_umount2, SYSCALLS_KILL },
#ifdef SYS_move_mount
	{ SYS_move_mount, SYSCALLS_KILL },
#endif
#ifdef SYS_fsopen
	{ SYS_fsopen, SYSCALLS_KILL },
#endif
#ifdef SYS_fsconfig
	{ SYS_fsconfig, SYSCALLS_KILL },
#endif
#ifdef SYS_fsmount
	{ SYS_fsmount, SYSCALLS_KILL },
#endif
#ifdef SYS_fspick
	{ SYS_fspick, SYSCALLS_KILL },
#endif
#ifdef SYS_open_tree
	{ SYS_open_tree, SYSCALLS_KILL },
#endif
#ifdef SYS_mount_setattr
	{ SYS_mount_setattr, SYSCALLS_KILL },
#endif
	{ SYS_pivot_root, SYSCALLS_KILL },
	{ SYS_chroot, SYSCALLS_KILL },
	{ SYS_unshare, SYSCALLS_KILL },
	{ SYS_setns, SYSCALLS_KILL },
	{ SYS_bpf, SYSCALLS_KILL },
	{ SYS_perf_event_open, SYSCALLS_KILL },
#ifdef SYS_userfaultfd
	{ SYS_userfaultfd, SYSCALLS_KILL },
#endif
#ifdef SYS_io_uring_setup
	{ SYS_io_uring_setup, SYSCALLS_KILL },
#endif
#ifdef SYS_io_uring_enter
	{ SYS_io_uring_enter, SYSCALLS_KILL },
#endif
#ifdef SYS_io_uring_register
	{ SYS_io_uring_register, SYSCALLS_KILL },
#endif
	{ SYS_add_key, SYSCALLS_KILL },
	{ SYS_request_key, SYSCALLS_KILL },
	{ SYS_keyctl, SYSCALLS_KILL },
	{ SYS_init_module, SYSCALLS_KILL },
	{ SYS_finit_module, SYSCALLS_KILL },
	{ SYS_delete_module, SYSCALLS_KILL },
	{ SYS_kexec_load, SYSCALLS_KILL },
#ifdef SYS_kexec_file_load
	{ SYS_kexec_file_load, SYSCALLS_KILL },
#endif
	{ SYS_name_to_handle_at, SYSCALLS_KILL },
	{ SYS_open_by_handle_at, SYSCALLS_KILL },
	{ SYS_reboot, SYSCALLS_KILL },
	{ SYS_swapon, SYSCALLS_KILL },
	{ SYS_swapoff, SYSCALLS_KILL },
	{ SYS_acct, SYSCALLS_KILL },
	{ SYS_quotactl, SYSCALLS_KILL },
	{ SYS_personality, SYSCALLS_KILL },
	{ SYS_syslog, SYSCALLS_KILL },
	{ SYS_settimeofday, SYSCALLS_KILL },
	{ SYS_clock_settime, SYSCALLS_KILL },
	{ SYS_adjtimex, SYSCALLS_KILL },
	{ SYS_clock_adjtime, SYSCALLS_KILL },
	{ SYS_sethostname, SYSCALLS_KILL },
	{ SYS_setdomainname, SYSCALLS_KILL },
	{ SYS_vhangup, SYSCALLS_KILL },
	{ SYS_fanotify_init, SYSCALLS_KILL },
#ifdef SYS_modify_ldt
	{ SYS_modify_ldt, SYSCALLS_KILL },
#endif
#ifdef SYS_iopl
	{ SYS_iopl, SYSCALLS_KILL },
#endif
#ifdef SYS_ioperm
	{ SYS_ioperm, SYSCALLS_KILL },
#endif
#ifdef SYS_pkey_mprotect
	{ SYS_pkey_mprotect, SYSCALLS_KILL },
#endif
	{ SYS_socket, EACCES },
	{ SYS_socketpair, EACCES },
	{ SYS_connect, EACCES },
	{ SYS_bind, EACCES },
	{ SYS_listen, EACCES },
	{ SYS_prctl, EPERM },
	{ SYS_mmap, SYSCALLS_NO_EXEC },
	{ SYS_mprotect, SYSCALLS_NO_EXEC },
};

/* With a signaller also: it changes no name and signals nobody itself. */
static const struct syscalls_rule drop_rules_sealed[] = {
#ifdef SYS_open
	{ SYS_open, EACCES },
#endif
#ifdef SYS_creat
	{ SYS_creat, EACCES },
#endif
	{ SYS_openat, SYSCALLS_READ_ONLY },
#ifdef SYS_openat2
	{ SYS_openat2, EACCES },
#endif
	{ SYS_truncate, EACCES },
#ifdef SYS_unlink
	{ SYS_unlink, EACCES },
#endif
	{ SYS_unlinkat, EACCES },
#ifdef SYS_rename
	{ SYS_rename, EACCES },
#endif
#ifdef SYS_renameat
	{ SYS_renameat, EACCES },
#endif
	{ SYS_renameat2, EACCES },
#ifdef SYS_link
	{ SYS_link, EACCES },
#endif
	{ SYS_linkat, EACCES },
#ifdef SYS_symlink
	{ SYS_symlink, EACCES },
#endif
	{ SYS_symlinkat, EACCES },
#ifdef SYS_mkdir
	{ SYS_mkdir, EACCES },
#endif
	{ SYS_mkdirat, EACCES },
#ifdef SYS_rmdir
	{ SYS_rmdir, EACCES },
#endif
#ifdef SYS_mknod
	{ SYS_mknod, EACCES },
#endif
	{ SYS_mknodat, EACCES },
#ifdef SYS_chmod
	{ SYS_chmod, EACCES },
#endif
	{ SYS_fchmodat, EACCES },
#ifdef SYS_fchmodat2
	{ SYS_fchmodat2, EACCES },
#endif
#ifdef SYS_chown
	{ SYS_chown, EACCES },
#endif
#ifdef SYS_lchown
	{ SYS_lchown, EACCES },
#endif
	{ SYS_fchownat, EACCES },
	{ SYS_chdir, EACCES },
#ifdef SYS_readlink
	{ SYS_readlink, EACCES },
#endif
	{ SYS_readlinkat, EACCES },
	{ SYS_setxattr, EACCES },
	{ SYS_lsetxattr, EACCES },
	{ SYS_removexattr, EACCES },
	{ SYS_lremovexattr, EACCES },
	{ SYS_kill, EPERM },
	{ SYS_tkill, EPERM },
	{ SYS_rt_sigqueueinfo, EPERM },
	{ SYS_rt_tgsigqueueinfo, EPERM },
	{ SYS_pidfd_open, EPERM },
	{ SYS_pidfd_send_signal, EPERM },
	{ SYS_tgkill, SYSCALLS_SELF },
	{ SYS_prlimit64, SYSCALLS_SELF },
};

static void
drop_stay(const char *why)
{
	log_warn("keeper_stays_root", "user", DROP_USER, "why", why, NULL);
}

void
drop_prepare(struct drop *d)
{
	int rc;

	*d = (struct drop){ .has_account = false };
	signaller_init(&d->signaller);
	if (geteuid() != 0)
		return;
	if (privilege_find(DROP_USER, &d->account) < 0) {
		drop_stay("there is no such user");
		return;
	}
	rc = signaller_start(&d->signaller, &d->account);
	d->has_account = rc == 0;
	if (rc == -EACCES)
		drop_stay("/proc hides processes from it (hidepid)");
	else if (rc < 0)
		drop_stay(strerrordesc_np(-rc));
}

void
drop_alone(struct drop *d)
{
	*d = (struct drop){ .has_account = false };
	signaller_init(&d->signaller);
	d->has_account =
	    geteuid() == 0 && privilege_find(DROP_USER, &d->account) == 0;
}

static int
drop_calls(const struct drop *d)
{
	int rc =
	    syscalls_limit(drop_rules, ARRAY_LEN(drop_rules), SYSCALLS_ALLOW);

	if (rc == 0 && d->has_account)
		rc = syscalls_limit(drop_rules_sealed,
		    ARRAY_LEN(drop_rules_sealed), SYSCALLS_ALLOW);
	if (rc != -ENOSYS)
		return rc;
	log_warn("no_seccomp", "effect", "the keeper may make any system call",
	    NULL);
	return 0;
}

int
drop_now(const struct drop *d, struct err *e)
{
	int rc = d->has_account ? privilege_become(&d->account) : 0;

	if (rc < 0)
		return err_sys(e, rc, "become %s", DROP_USER);
	rc = privilege_lock();
	if (rc == 0 && BERTH_CONFINED)
		rc = drop_calls(d);
	return rc < 0 ? err_sys(e, rc, "confine the keeper") : 0;
}
