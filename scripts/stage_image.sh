#!/usr/bin/env bash
# Puts what the image holds into an empty directory: the binary, iptables, the shared libraries of both, CA certificates.
#   scripts/stage_image.sh BINARY DIRECTORY
# Run inside the build stage of the Dockerfile; nothing of it is special to an image.
set -euo pipefail
binary=${1:?usage: scripts/stage_image.sh BINARY DIRECTORY}
root=${2:?usage: scripts/stage_image.sh BINARY DIRECTORY}
if [ -e "$root" ] && [ -n "$(ls -A "$root")" ]; then
  echo "stage_image.sh: $root is not empty" >&2
  exit 1
fi

# As Debian has it since 12: the old directories lead below /usr.
mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{etc,tmp,run,var/lib,proc,sys,dev}
chmod 1777 "$root/tmp"
for directory in bin sbin lib lib64; do
  ln -s "usr/$directory" "$root/$directory"
done

put() { # put PATH: a file or a link of this machine, in the same place
  local path=$1 place
  place=$root/usr${path#/usr}
  mkdir -p "$(dirname "$place")"
  cp -a "$path" "$place"
}
put_libraries() { # put_libraries FILE: what the loader would load for it, under the names it looks for
  local path place
  for path in $(ldd "$1" | grep -o '/[^ ]*'); do
    place=$root/usr${path#/usr}
    if [ ! -e "$place" ]; then
      mkdir -p "$(dirname "$place")"
      cp -L "$path" "$place"
    fi
  done
}

install -s -m 0755 "$binary" "$root/usr/sbin/kube-shunt"
put_libraries "$binary"

# Both variants, both families; the names are links to one program each. Their extensions are loaded at run time.
for program in xtables-nft-multi xtables-legacy-multi; do
  put "/usr/sbin/$program"
  put_libraries "/usr/sbin/$program"
done
for family in iptables ip6tables; do
  for variant in nft legacy; do
    for verb in save restore; do
      put "/usr/sbin/$family-$variant-$verb"
    done
  done
done
extensions=$(dirname "$(ls /usr/lib/*/xtables/libxt_comment.so)")
mkdir -p "$root$extensions"
cp -a "$extensions"/*.so "$root$extensions/"

mkdir -p "$root/etc/ssl/certs"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf 'root:x:0:0:root:/:/usr/sbin/nologin\n' >"$root/etc/passwd"
printf 'root:x:0:\n' >"$root/etc/group"
printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"

# The licences of what came along.
find "$root/usr" -type f -printf '/usr/%P\n' | while read -r file; do
  dpkg-query -S "$file" "${file#/usr}" 2>/dev/null || true
done | cut -d: -f1 | sort -u | while read -r package; do
  if [ -f "/usr/share/doc/$package/copyright" ]; then
    mkdir -p "$root/usr/share/doc/$package"
    cp -L "/usr/share/doc/$package/copyright" "$root/usr/share/doc/$package/"
  fi
done
du -sh "$root" | cut -f1
