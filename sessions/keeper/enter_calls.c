/*
 * System calls that nobody in a sandbox may make: what changes mounts and
 * namespaces, types into terminals, or is a large piece of kernel that is not
 * kept apart. They fail, for programs try some of them; tracing stays possible,
 * because it ends at the sandbox's pid namespace. Runs in the leader.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "base/syscalls.h"
#include "sessions/keeper/enter.h"

static const struct syscalls_rule enter_rules[] = {
	{ SYS_mount, EPERM },
	{ SYS_umount2, EPERM },
	{ SYS_pivot_root, EPERM },
	{ SYS_chroot, EPERM },
#ifdef SYS_open_tree
	{ SYS_open_tree, EPERM },
#endif
#ifdef SYS_move_mount
	{ SYS_move_mount, EPERM },
#endif
#ifdef SYS_fsopen
	{ SYS_fsopen, EPERM },
#endif
#ifdef SYS_fsconfig
	{ SYS_fsconfig, EPERM },
#endif
#ifdef SYS_fsmount
	{ SYS_fsmount, EPERM },
#endif
#ifdef SYS_fspick
	{ SYS_fspick, EPERM },
#endif
#ifdef SYS_mount_setattr
	{ SYS_mount_setattr, EPERM },
#endif
	{ SYS_setns, EPERM },
	{ SYS_unshare, SYSCALLS_NO_SPACES },
	{ SYS_clone, SYSCALLS_NO_SPACES },
/* Its flags are in memory; libraries fall back to clone(). */
#ifdef SYS_clone3
	{ SYS_clone3, ENOSYS },
#endif
	{ SYS_ioctl, SYSCALLS_NO_TYPING },
	{ SYS_socket, SYSCALLS_NETWORK },
	{ SYS_add_key, EPERM },
	{ SYS_request_key, EPERM },
	{ SYS_keyctl, EPERM },
	{ SYS_bpf, EPERM },
	{ SYS_perf_event_open, EPERM },
#ifdef SYS_userfaultfd
	{ SYS_userfaultfd, EPERM },
#endif
#ifdef SYS_io_uring_setup
	{ SYS_io_uring_setup, ENOSYS },
	{ SYS_io_uring_enter, ENOSYS },
	{ SYS_io_uring_register, ENOSYS },
#endif
	{ SYS_init_module, EPERM },
	{ SYS_finit_module, EPERM },
	{ SYS_delete_module, EPERM },
	{ SYS_kexec_load, EPERM },
#ifdef SYS_kexec_file_load
	{ SYS_kexec_file_load, EPERM },
#endif
	{ SYS_name_to_handle_at, EPERM },
	{ SYS_open_by_handle_at, EPERM },
	{ SYS_reboot, EPERM },
	{ SYS_swapon, EPERM },
	{ SYS_swapoff, EPERM },
	{ SYS_acct, EPERM },
	{ SYS_quotactl, EPERM },
#ifdef SYS_quotactl_fd
	{ SYS_quotactl_fd, EPERM },
#endif
	{ SYS_syslog, EPERM },
	{ SYS_settimeofday, EPERM },
	{ SYS_clock_settime, EPERM },
	{ SYS_clock_adjtime, EPERM },
	{ SYS_sethostname, EPERM },
	{ SYS_setdomainname, EPERM },
	{ SYS_vhangup, EPERM },
	{ SYS_fanotify_init, EPERM },
	{ SYS_lookup_dcookie, EPERM },
#ifdef SYS_modify_ldt
	{ SYS_modify_ldt, EPERM },
#endif
#ifdef SYS_iopl
	{ SYS_iopl, EPERM },
#endif
#ifdef SYS_ioperm
	{ SYS_ioperm, EPERM },
#endif
#ifdef SYS_uselib
	{ SYS_uselib, EPERM },
#endif
#ifdef SYS_move_pages
	{ SYS_move_pages, EPERM },
#endif
};

int
enter_limit_calls(void)
{
	int rc =
	    syscalls_limit(enter_rules, ARRAY_LEN(enter_rules), SYSCALLS_ALLOW);

	/* No seccomp in this kernel: capabilities and namespaces are left. */
	return rc == -ENOSYS ? 0 : rc;
}
