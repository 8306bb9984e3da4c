#!/usr/bin/env bash
# Runs a command as root under another kernel: Debian's, in a virtual machine (qemu, no KVM needed). README.md beside says more.
#   test/vm/run.sh [--kernel bookworm|backports|DIR] [--timeout SECONDS] [--memory MB] [--cpus N] [--modules SET] -- COMMAND...
# --kernel     bookworm: the newest kernel of the distribution itself (the default), backports: of its backports, or a
#              directory with boot/vmlinuz-* and lib/modules/*, as a package linux-image-* unpacks to
# --modules    what is loaded beforehand: all (the default, the old iptables among it), nft, ipvs (nft and IPVS), none
# --get        only sees to it that the kernel is there; no command
# Exits with 125 and the reason when there can be no such machine, with 124 when the time (600 s unless told) is over.
set -euo pipefail
cd "$(dirname "$0")/../.."
repository=$PWD
kernel=bookworm limit=600 memory=1024 cpus=2 module_set=all only_get=''
# On demand works as well, but a transaction that makes the kernel load twenty of them takes half a minute here.
nft_modules=(nf_tables nft_chain_nat nft_ct nft_fib_inet nft_hash nft_limit nft_log nft_masq nft_nat nft_numgen nft_objref nft_redir
  nft_reject_inet nft_reject_ipv4 nft_reject_ipv6 nf_conntrack_netlink veth dummy bridge sctp)
# Whoever uses iptables-legacy finds them loaded; the rest comes by itself.
iptables_modules=(ip_tables iptable_filter iptable_nat iptable_mangle ip6_tables ip6table_filter ip6table_nat ip6table_mangle)
ipvs_modules=(ip_vs ip_vs_rr ip_vs_wrr ip_vs_lc ip_vs_wlc ip_vs_sh ip_vs_mh ip_vs_sed ip_vs_nq ip_vs_dh)

cannot() {
  echo "vm: $*" >&2
  exit 125
}

while [ $# -gt 0 ]; do
  case $1 in
    --kernel) kernel=${2:-} && shift 2 ;;
    --timeout) limit=${2:-} && shift 2 ;;
    --memory) memory=${2:-} && shift 2 ;;
    --cpus) cpus=${2:-} && shift 2 ;;
    --modules) module_set=${2:-} && shift 2 ;;
    --get) only_get=yes && shift ;;
    --) shift && break ;;
    *) cannot "no option $1 (usage: [--kernel K] [--timeout S] [--memory MB] [--cpus N] [--modules SET] -- COMMAND...)" ;;
  esac
done
[ $# -gt 0 ] || [ -n "$only_get" ] || cannot "no command"
case $module_set in
  all) modules=("${nft_modules[@]}" "${ipvs_modules[@]}" "${iptables_modules[@]}") ;;
  ipvs) modules=("${nft_modules[@]}" "${ipvs_modules[@]}") ;;
  nft) modules=("${nft_modules[@]}") ;;
  none) modules=() ;;
  *) cannot "no set of modules $module_set" ;;
esac
[ "$(id -u)" -eq 0 ] || cannot "needs root, to read every file"
for program in qemu-system-x86_64 busybox modprobe depmod; do
  command -v "$program" >/dev/null || cannot "no $program (scripts/install.sh --vm)"
done

newest_package() { # newest_package own|backports: the package and version that linux-image-amd64 stands for
  local version
  version=$(apt-cache madison linux-image-amd64 2>/dev/null |
    awk -F'|' -v want="$1" '{ backports = $3 ~ /-backports/ } (want == "backports") == backports { print $2; exit }' | tr -d ' ')
  [ -n "$version" ] || return 1
  apt-cache show "linux-image-amd64=$version" | sed -nE 's/^Depends: (linux-image-[^ ]+) \(= ([^)]+)\).*/\1=\2/p'
}

unpacked_kernel() { # unpacked_kernel own|backports: its directory; downloads it when it is not there
  local package directory work
  package=$(newest_package "$1") || return 1
  directory=build/vm/${package/=/_}
  if [ ! -d "$directory" ]; then
    mkdir -p build/vm
    work=$(mktemp -d build/vm/unpacking.XXXXXX)
    echo "vm: downloading $package" >&2
    (cd "$work" && { apt-get download -qq "$package" 2>&1 || { apt-get update -qq && apt-get download -qq "$package"; }; }) >"$work/log" 2>&1 || {
      cat "$work/log" >&2
      rm -rf "$work"
      return 1
    }
    dpkg-deb -x "$work"/*.deb "$work/root"
    depmod -b "$work/root" "$(basename "$work"/root/lib/modules/*)"
    mv -T "$work/root" "$directory" 2>/dev/null || true # somebody else was faster
    rm -rf "$work"
  fi
  echo "$directory"
}

case $kernel in
  bookworm) kernel_directory=$(unpacked_kernel own) || cannot "cannot get a kernel from apt" ;;
  backports) kernel_directory=$(unpacked_kernel backports) || cannot "cannot get a kernel from apt's backports" ;;
  *) kernel_directory=$kernel ;;
esac
kernel_directory=$(realpath -e "$kernel_directory" 2>/dev/null) || cannot "no directory $kernel"
image=$(find "$kernel_directory/boot" -name 'vmlinuz-*' -print -quit 2>/dev/null)
version=${image##*/vmlinuz-}
if [ -z "$image" ] || [ ! -d "$kernel_directory/lib/modules/$version" ]; then
  cannot "no kernel with modules in $kernel_directory"
fi
[ -z "$only_get" ] || exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/initramfs
mkdir -p "$root"/{bin,modules,proc,sys,dev,host,repository}
cp "$(command -v busybox)" "$root/bin/busybox"

# What it takes to see the host's files, in the order in which it can be loaded. What one kernel has as a module is part of
# another, or of another module.
number=10
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache 9pnet 9pnet_virtio 9p; do
  file=$(find "$kernel_directory/lib/modules/$version" -name "$module.ko*" -print -quit)
  case $file in
    '') continue ;;
    *.xz) xz -dc "$file" >"$root/modules/$number-$module.ko" ;;
    *.zst) zstd -qdc "$file" >"$root/modules/$number-$module.ko" ;;
    *) cp "$file" "$root/modules/$number-$module.ko" ;;
  esac
  number=$((number + 1))
done

printf '#!/bin/busybox sh\nexec /bin/busybox chroot /host /sbin/modprobe -d %q "$@"\n' "$kernel_directory" >"$root/modprobe"
{
  printf 'cd %q || exit 126\nexport PATH=%q HOME=/root LC_ALL=C.UTF-8\nexec' "$repository" "$PATH"
  printf ' %q' "$@"
} >"$root/command"
printf 'repository=%q\nmodules=%q\n' "$repository" "${modules[*]}" >"$root/settings"
cat >"$root/init" <<'INIT'
#!/bin/busybox sh
# The first process of the machine. Nothing here goes to the second serial line except the command's output; the third gets its
# exit code.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in /modules/*; do
  $b insmod "$module"
done
. /settings
# The cache is loose because nobody else writes what is read here.
if $b mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose host /host; then
  # The repository may lie below what gets a new file system.
  $b mount --bind "/host$repository" /repository
  for name in tmp run var/tmp dev/shm; do
    [ "$name" = dev/shm ] && $b mount -t devtmpfs devtmpfs /host/dev && $b mkdir -p /host/dev/shm /host/dev/pts
    $b mount -t tmpfs -o mode=1777 tmpfs "/host/$name"
  done
  $b mount -t devpts devpts /host/dev/pts
  $b ln -s /proc/self/fd /host/dev/fd # devtmpfs has none, and bash wants it for <(...)
  $b mount -t proc proc /host/proc
  $b mount -t sysfs sysfs /host/sys
  case $repository in
    /tmp/* | /run/* | /var/tmp/*) $b mkdir -p "/host$repository" && $b mount --move /repository "/host$repository" ;;
  esac
  $b cp /command /host/run/command
  echo /modprobe >/proc/sys/kernel/modprobe
  # shellcheck disable=SC2086  # words
  [ -z "$modules" ] || /modprobe -aq $modules
  $b ip link set lo up
  $b stty -F /dev/ttyS1 raw
  $b chroot /host /bin/bash /run/command </dev/null >/dev/ttyS1 2>&1
  echo "$?" >/dev/ttyS2
fi
$b reboot -f
INIT
chmod +x "$root/init" "$root/modprobe"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initramfs.gz"

# What costs much without hardware and protects nobody here is left out: mitigations, a fifth level of page tables, supervisor
# checks at each copy from user space. Grace periods are hurried because each end of a network namespace waits for several.
# No tests of timers and clocks: they take seconds, and the clock is the emulator's own.
cpu=max,-la57,-smap,-smep,-pku,-umip
append="console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr audit=0 nowatchdog no_timer_check tsc=reliable"
append+=" rcupdate.rcu_expedited=1 random.trust_cpu=on"
# One processor needs no atomic instructions from the emulator.
if [ "$cpus" -eq 1 ]; then accel=tcg,thread=single; else accel=tcg,thread=multi; fi

# multidevs: files of several file systems get inode numbers that are theirs alone.
set +e
timeout --foreground "$limit" qemu-system-x86_64 -accel "$accel,tb-size=512" -cpu "$cpu" -smp "$cpus" -m "$memory" -nodefaults -no-user-config -display none \
  -no-reboot -nic none -kernel "$image" -initrd "$work/initramfs.gz" -append "$append" \
  -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
  -serial "file:$work/console" -serial stdio -serial "file:$work/code" </dev/null
ended=$?
set -e
[ $ended -ne 124 ] || {
  echo "vm: not done after $limit s" >&2
  exit 124
}
code=$(tr -cd 0-9 <"$work/code" 2>/dev/null || true)
if [ -z "$code" ]; then
  tail -n 30 "$work/console" >&2 || true
  cannot "the machine did not run the command"
fi
exit "$code"
