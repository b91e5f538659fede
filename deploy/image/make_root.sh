#!/usr/bin/env bash
# Lays out what the image holds. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/image/make_root.sh BUNDLE DIRECTORY

Writes DIRECTORY/root and DIRECTORY/state, from which the Containerfile beside this script makes an
image: the archive that deploy/bundle.sh has written, in /opt/slipstream, and this machine's C library,
which has to be of the same architecture (glibc 2.36 or newer). There is no shell in it, and nothing else.
Needs no network and no rights.
END
}

die() {
  echo "make_root: $*" >&2
  exit 1
}

case "${1-}" in
  --help | -h)
    usage
    exit 0
    ;;
esac
[[ $# -eq 2 ]] || die "which bundle, and where to? see deploy/image/make_root.sh --help"
[[ -f "$1" ]] || die "there is no bundle '$1': deploy/bundle.sh makes one"
[[ ! -e "$2/root" ]] || die "'$2/root' is there already: remove it, or name another directory"
root=$2/root
mkdir -p "$root/opt/slipstream" "$root/etc" "$root/lib64" "$root/lib/x86_64-linux-gnu" "$root/tmp" "$2/state"

tar --extract --file "$1" --directory "$root/opt/slipstream" --strip-components=1 --no-same-owner
[[ -x "$root/opt/slipstream/bin/ps_server" ]] || die "'$1' has no bin/ps_server: it is not a bundle"

# The only libraries that the bundle leaves to the machine.
loader=/lib64/ld-linux-x86-64.so.2
[[ -e "$loader" ]] || die "there is no $loader: images are made on x86-64 with glibc"
cp -L "$loader" "$root/lib64/"
# Where the loader of Debian and Ubuntu looks.
ldd "$root"/opt/slipstream/bin/ps_{server,worker} |
  awk '$1 == "libc.so.6" || $1 == "libm.so.6" {print $3}' | sort -u |
  xargs -I{} cp -L {} "$root/lib/x86_64-linux-gnu/"
if [[ -f /usr/share/doc/libc6/copyright ]]; then
  install -D -m 644 /usr/share/doc/libc6/copyright "$root/opt/slipstream/licenses/libc6"
fi
echo "slipstream:x:65532:65532::/tmp:" >"$root/etc/passwd"
echo "hosts: files dns" >"$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp"
echo "$2: $(du -sh "$root" | cut -f 1); now: buildah build --tag slipstream:VERSION --file deploy/image/Containerfile $2"
