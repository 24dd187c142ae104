#!/usr/bin/env bash
# Runs a static x86-64 Linux program on an emulated processor with AVX-512,
# for machines that have none: Bochs boots a Debian kernel whose only process
# is a small init, which runs the program and hands its output back.
#
# QEMU is no help here: its software emulation stops at AVX2.
#
# usage: run_emulated.sh [options] PROGRAM [ARGS...]
#   -f FILE     put FILE beside the program (as /BASENAME); may be repeated.
#               The program's working directory is /.
#   -e VAR=VAL  set an environment variable for the program; may be repeated
#   -t SECONDS  stop everything after that much real time (default 600)
#   -m MIB      memory of the emulated machine (default 512)
#   -c MODEL    Bochs processor model (default corei7_skylake_x: AVX-512
#               F, CD, BW, DQ, VL; corei7_icelake_u adds VBMI, IFMA, VNNI, ...)
#   -v          print the kernel's and the emulator's messages to stderr
#
# Standard output, standard error and the exit code are the program's own
# (128 + N if signal N ended it); its standard input is empty. Codes of this
# script: 124 time is up, 125 the emulation failed, 126 PROGRAM is unusable.
#
# The kernel and the init are kept in $ETALON_EMU_DIR if that is set, and
# otherwise made anew for each run in a temporary folder.

set -euo pipefail
# The messages of apt-cache and readelf are parsed below.
export LC_ALL=C

# Everything needed beyond Debian's essential packages. bochs-term is the one
# display that needs neither a window system nor a network port.
readonly packages=(bochs bochs-term bochsbios vgabios isolinux syslinux-common
  xorriso cpio gcc libc6-dev binutils)
# The cloud flavour boots quicker than the full one: fewer built-in drivers.
readonly kernel_package=linux-image-cloud-amd64

# Emulated instructions per emulated second. It sets only how the guest's
# clock relates to its work: a higher value makes every wait (BIOS, timers)
# longer in real time, a lower one makes the timer interrupt more frequent.
readonly ips=20000000

die() {
  printf 'run_emulated: %s\n' "$2" >&2
  exit "$1"
}

usage() {
  sed -n '/^# usage:/,/^$/ { s/^# \{0,1\}//; p }' "${BASH_SOURCE[0]}"
}

limit=600
memory=512
model=corei7_skylake_x
verbose=
files=()
environment=()
while getopts f:e:t:m:c:vh option; do
  case $option in
    f) files+=("$OPTARG") ;;
    e) environment+=("$OPTARG") ;;
    t) limit=$OPTARG ;;
    m) memory=$OPTARG ;;
    c) model=$OPTARG ;;
    v) verbose=1 ;;
    h) usage && exit 0 ;;
    *) usage >&2 && exit 125 ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -ge 1 ]] || { usage >&2 && exit 125; }
[[ $limit =~ ^[1-9][0-9]*$ ]] || die 125 "-t wants a whole number of seconds"
[[ $memory =~ ^[1-9][0-9]*$ ]] || die 125 "-m wants a whole number of MiB"
program=$1
shift

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] ||
  die 125 "packages missing: apt-get install --no-install-recommends ${missing[*]}"

[[ -f $program && -x $program ]] || die 126 "no executable file: $program"
headers=$(readelf -hl -- "$program" 2>/dev/null) || die 126 "not an ELF file: $program"
[[ $headers == *X86-64* ]] || die 126 "not an x86-64 program: $program"
# There is no dynamic loader and no library in the guest.
[[ $headers != *INTERP* ]] || die 126 "not static (link with -static): $program"

work=$(mktemp -d "${TMPDIR:-/tmp}/run_emulated.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
cache=${ETALON_EMU_DIR:-$work/cache}
mkdir -p -- "$cache"
cache=$(cd -- "$cache" && pwd)

# The kernel is unpacked, never installed: nothing on this machine boots it.
# Pieces reach the cache by a rename, so that runs side by side never see half
# of one.
get_kernel() (
  mkdir "$work/kernel"
  cd "$work/kernel"
  # The package named above is empty and depends on the current kernel's.
  image=$(apt-cache depends "$kernel_package" | sed -n 's/^ *Depends: *\(linux-image-[^ ]*\).*/\1/p' | head -n 1)
  [[ -n $image ]] || die 125 "apt knows no $kernel_package: run apt-get update"
  apt-get -qq download "$image" >download.log 2>&1 || {
    cat download.log >&2
    die 125 "cannot download $image"
  }
  dpkg-deb -x "$image"_*.deb tree
  mv tree/boot/vmlinuz-* "$cache/vmlinuz"
)

# Output leaves the guest through the two parallel ports, which Bochs writes
# to files byte for byte. Unlike its serial ports they have no line rate, and
# unlike the console nothing else writes to them. The exit code goes to the
# console, where the program itself cannot write.
init_source() {
  cat <<'EOF'
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void finish(const char *key, int value) {
  printf("\nrun_emulated %s %d\n", key, value);
  fflush(stdout);
  tcdrain(1);
  /* Bochs stops as soon as this word has arrived at this port. */
  for (const char *s = "Shutdown"; *s; s++) outb(*s, 0x8900);
  for (;;) pause();
}

static void need(int ok, const char *what) {
  if (ok) return;
  perror(what);
  finish("failed", errno);
}

/* A file of strings, each ended by a NUL; count is how many come first. */
static char **strings(const char *path) {
  FILE *f = fopen(path, "rb");
  need(f != NULL, path);
  size_t size = 0, used = 0, count = 0;
  char *text = NULL;
  do {
    text = realloc(text, (size += 65536));
    need(text != NULL, path);
    used += fread(text + used, 1, size - used, f);
  } while (used == size);
  fclose(f);
  for (size_t i = 0; i < used; i++) count += text[i] == 0;
  char **list = calloc(count + 1, sizeof *list);
  need(list != NULL, path);
  for (size_t i = 0; i < count; i++) {
    list[i] = text;
    text += strlen(text) + 1;
  }
  return list;
}

/* Moves what the pipe holds to the port. As read(): 0 at the pipe's end, -1
   if it holds nothing now. */
static int drain(int fd, unsigned short port) {
  static unsigned char bytes[65536];
  int n = (int)read(fd, bytes, sizeof bytes);
  for (int i = 0; i < n; i++) {
    outb(bytes[i], port);
    outb(0x0d, port + 2); /* strobe: the printer takes the byte */
    outb(0x0c, port + 2);
  }
  return n;
}

int main(void) {
  mkdir("/dev", 0755);
  mkdir("/proc", 0755);
  mkdir("/sys", 0755);
  mkdir("/tmp", 01777);
  int no_dev = mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
  int console = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_CLOEXEC);
  dup2(console, 1);
  dup2(console, 2);
  need(iopl(3) == 0, "iopl");
  need(no_dev == 0, "/dev");
  need(mount("proc", "/proc", "proc", 0, NULL) == 0, "/proc");
  need(mount("sysfs", "/sys", "sysfs", 0, NULL) == 0, "/sys");
  char **args = strings("/.emu/args"), **env = strings("/.emu/env");
  int out[2], err[2];
  need(pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0, "pipe");

  pid_t child = fork();
  need(child >= 0, "fork");
  if (child == 0) {
    if (iopl(0) != 0) _exit(126); /* the ports are not the program's */
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    setsid();
    execve(args[0], args, env);
    fprintf(stderr, "run_emulated: %s: %s\n", args[0], strerror(errno));
    _exit(126);
  }
  close(out[1]);
  close(err[1]);
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  fcntl(err[0], F_SETFL, O_NONBLOCK);

  /* Ends with the program, even if children of it still hold the pipes. */
  struct pollfd fds[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  int status = 0, done = 0;
  while (!done) {
    poll(fds, 2, 100);
    if (fds[0].revents && drain(out[0], 0x378) == 0) fds[0].fd = -1;
    if (fds[1].revents && drain(err[0], 0x278) == 0) fds[1].fd = -1;
    pid_t gone;
    while ((gone = waitpid(-1, &status, WNOHANG)) > 0)
      if (gone == child) {
        done = 1;
        break;
      }
  }
  while (drain(out[0], 0x378) > 0) continue;
  while (drain(err[0], 0x278) > 0) continue;
  finish("exit", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}
EOF
}

make_init() {
  init_source >"$work/init.c"
  gcc -O1 -march=x86-64 -static -o "$work/init" "$work/init.c"
  mv "$work/init" "$cache/init.$init_key"
}

# A changed init must not be answered by an older one from the cache.
init_key=$(init_source | sha256sum | cut -c 1-16)
[[ -s $cache/vmlinuz ]] || get_kernel
[[ -x $cache/init.$init_key ]] || make_init

root=$work/root
mkdir -p "$root/.emu"
cp -- "$cache/init.$init_key" "$root/.emu/init"
for file in "$program" "${files[@]}"; do
  name=${file##*/}
  case $name in dev | proc | sys | tmp | .emu) die 125 "the guest has its own /$name" ;; esac
  [[ ! -e $root/$name ]] || die 125 "two files named $name"
  [[ -f $file && -r $file ]] || die 125 "no readable file: $file"
  cp -- "$file" "$root/$name"
done
name=${program##*/}
printf '%s\0' "/$name" "$@" >"$root/.emu/args"
printf '%s\0' PATH=/ HOME=/ "${environment[@]}" >"$root/.emu/env"

# noxsaves, clearcpuid: Bochs 2.7 reports the size of the compacted register
#   save area wrongly, on which Linux gives up AVX altogether; without the
#   compacted form it uses the standard one, whose size is right (on the
#   newer models only without protection keys). The rest of the list keeps the
#   kernel, not the program, from features with which corei7_icelake_u hangs
#   at boot or that make Bochs log an error at every timer tick.
# mitigations=off: some of them switch AVX off on these processor models.
# cryptomgr.notests, initcall_blacklist, init_on_alloc: work at boot that the
#   program has no use for; together more than half of the boot time.
# tsc_early_khz: Bochs counts one tick per instruction, not what the model's
#   nominal clock rate says, and delays would be far too long.
# panic=-1, reboot=t: a panic becomes a triple fault, which ends Bochs (see
#   reset_on_triple_fault) instead of booting again until time is up.
# shellcheck disable=SC2054 # the commas are the kernel's
boot_options=(console=ttyS0,115200 rdinit=/.emu/init
  nosmp noapic nolapic acpi=off nokaslr mitigations=off
  noxsaves nopku
  clearcpuid=xsavec,xsaves,pku,aperfmperf,erms,fsrm,umip,sha_ni,vaes,gfni,rdpid
  cryptomgr.notests init_on_alloc=0
  initcall_blacklist=trace_eval_init,init_kprobe_trace,load_system_certificate_list,cubictcp_register
  tsc=reliable tsc_early_khz=$((ips / 1000)) random.trust_cpu=on
  panic=-1 reboot=t)
[[ -n $verbose ]] || boot_options+=(quiet)

iso=$work/iso
mkdir "$iso"
(cd "$root" && find . -mindepth 1 -print0 | cpio -0 -o -H newc --quiet) >"$iso/initrd"
ln -- "$cache/vmlinuz" "$iso/vmlinuz" 2>/dev/null || cp -- "$cache/vmlinuz" "$iso/vmlinuz"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$iso"
cat >"$iso/isolinux.cfg" <<EOF
DEFAULT linux
PROMPT 0
LABEL linux
  KERNEL /vmlinuz
  INITRD /initrd
  APPEND ${boot_options[*]}
EOF
xorriso -as mkisofs -quiet -o "$work/boot.iso" -b isolinux.bin -c boot.cat \
  -no-emul-boot -boot-load-size 4 -boot-info-table "$iso" >"$work/xorriso.log" 2>&1 || {
  cat "$work/xorriso.log" >&2
  die 125 "cannot make the boot image"
}

cat >"$work/bochsrc" <<EOF
display_library: term
megs: $memory
cpu: model=$model, count=1, ips=$ips, reset_on_triple_fault=0
clock: sync=none
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
ata0-master: type=cdrom, path=boot.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=console
parport1: enabled=1, file=stdout
parport2: enabled=1, file=stderr
log: bochs.log
panic: action=fatal
EOF
# Debian builds Bochs with its debugger, which waits for this word to start.
echo continue >"$work/start"

# The display insists on a terminal, which script(1) provides. In the
# foreground, since a background job must not set a terminal up.
: >"$work/console"
code=0
(
  cd "$work"
  export TERM=vt100
  exec script -qefc "stty rows 30 cols 100 && exec timeout --foreground -k 2 $limit bochs-bin -q -f bochsrc -rc start" \
    screen </dev/null >/dev/null
) || code=$?

if [[ -n $verbose ]]; then
  tr -d '\r' <"$work/console" >&2
  cat "$work/bochs.log" >&2
fi
[[ ! -e $work/stdout ]] || cat "$work/stdout"
[[ ! -e $work/stderr ]] || cat "$work/stderr" >&2
result=$(tr -d '\r' <"$work/console" | sed -n 's/^run_emulated exit \([0-9]*\)$/\1/p' | tail -n 1)
[[ -z $result ]] || exit "$result"
[[ $code -ne 124 && $code -ne 137 ]] || die 124 "stopped after $limit seconds"
tail -n 20 "$work/console" >&2
[[ ! -e $work/bochs.log ]] || grep -a PANIC "$work/bochs.log" >&2 || true
die 125 "the emulation failed (see -v)"
