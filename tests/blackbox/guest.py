"""A virtual machine that boots Debian's cloud kernel with berth's programs and
busybox in memory, runs one shell script as its first process and is off again:
for what the kernel of the host cannot show. Without /dev/kvm it takes seconds.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile

from berth import RELEASE, Failure, run

QEMU = shutil.which("qemu-system-x86_64")
BUSYBOX = pathlib.Path("/usr/bin/busybox")
PROGRAMS = ("berthd", "berth-sshd", "berth-session", "berth-sandbox", "berth")
BOOT_S = 200
MEMORY_MB = 1024

# The first file system cannot be the old root of pivot_root(2), so all moves.
INIT = """#!/bin/busybox sh
export PATH=/usr/bin
if [ ! -e /moved ]; then
\tmount -t tmpfs -o size=80% none /mnt
\tcp -a /usr /etc /bin /sbin /lib /lib64 /init /test /mnt
\tmkdir /mnt/proc /mnt/sys /mnt/dev /mnt/tmp /mnt/run /mnt/var /mnt/root
\tchmod 1777 /mnt/tmp
\t: >/mnt/moved
\texec switch_root /mnt /init
fi
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir /dev/pts
mount -t devpts -o mode=620,ptmxmode=666 pts /dev/pts
mount -t cgroup2 none /sys/fs/cgroup
insmod /usr/lib/overlay.ko
ip link set lo up
hostname guest
echo
sh /test </dev/null
echo "@end $?"
poweroff -f
"""

PASSWD = """root:x:0:0::/root:/bin/sh
berth:x:990:990::/nonexistent:/bin/false
berth-box:x:991:991::/nonexistent:/bin/false
berth-net:x:992:992::/nonexistent:/bin/false
user:x:1000:1000::/home/user:/bin/sh
"""


def kernel():
    """(image, overlay.ko) of the newest installed kernel that has both."""
    found = []
    for image in pathlib.Path("/boot").glob("vmlinuz-*-cloud-amd64"):
        name = image.name.removeprefix("vmlinuz-")
        module = pathlib.Path("/lib/modules", name,
                              "kernel/fs/overlayfs/overlay.ko")
        if module.exists():
            found.append((image.stat().st_mtime, image, module))
    return max(found)[1:] if found else None


def lacks():
    """What this host has not to boot one, or None."""
    if not QEMU:
        return "qemu-system-x86"
    if not BUSYBOX.exists():
        return "busybox-static"
    if not kernel():
        return "linux-image-cloud-amd64"
    return None


def libraries(program):
    for line in run(["ldd", program]).stdout.decode().splitlines():
        words = line.replace("=>", " ").split()
        path = next((w for w in words if w.startswith("/")), None)
        if path:
            yield path


def fill(root, script):
    """The tree of the guest."""
    for name in ("usr/bin", "usr/lib", "etc", "mnt"):
        (root / name).mkdir(parents=True)
    for name, to in (("bin", "usr/bin"), ("sbin", "usr/bin"),
                     ("lib", "usr/lib"), ("lib64", "usr/lib")):
        (root / name).symlink_to(to)
    shutil.copy(BUSYBOX, root / "usr/bin/busybox")
    applets = run([BUSYBOX, "--list"]).stdout.decode().split()
    for name in applets:
        if name != "busybox":
            (root / "usr/bin" / name).symlink_to("busybox")
    # Busybox's own cannot become another user.
    (root / "usr/bin/setpriv").unlink()
    for program in (*(RELEASE / name for name in PROGRAMS),
                    pathlib.Path(shutil.which("setpriv"))):
        shutil.copy(program, root / "usr/bin")
        for library in libraries(program):
            to = root / "usr/lib" / os.path.basename(library)
            if not to.exists():
                shutil.copy(os.path.realpath(library), to)
    shutil.copy(kernel()[1], root / "usr/lib")
    (root / "etc/passwd").write_text(PASSWD)
    (root / "etc/group").write_text("".join(
        "{0}:x:{3}:\n".format(*line.split(":"))
        for line in PASSWD.splitlines()))
    (root / "test").write_text(script)
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)


def boot(script):
    """Runs the script in a guest; what its console said, in lines."""
    top = pathlib.Path(tempfile.mkdtemp(prefix="guest-", dir="/tmp"))
    try:
        fill(top / "root", script)
        with open(top / "initrd", "wb") as out:
            names = b"\0".join(
                str(p.relative_to(top / "root")).encode()
                for p in sorted((top / "root").rglob("*")))
            subprocess.run(
                ["cpio", "-o", "-0", "-H", "newc", "--quiet", "-R", "0:0"],
                cwd=top / "root", input=names, stdout=out, check=True,
                timeout=60)
        done = run(
            [QEMU, "-nodefaults", "-no-user-config", "-nographic", "-no-reboot",
             "-m", MEMORY_MB, "-smp", 2, "-serial", "stdio",
             "-kernel", kernel()[0], "-initrd", top / "initrd",
             "-append", "console=ttyS0 panic=-1 quiet"], timeout=BOOT_S)
        text = done.stdout.decode(errors="replace").replace("\r", "")
        if "@end" not in text:
            raise Failure(f"the guest did not get to its end:\n{text[-4000:]}"
                          f"\n{done.stderr.decode(errors='replace')}")
        return text.splitlines()
    finally:
        shutil.rmtree(top)
