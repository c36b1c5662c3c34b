#!/usr/bin/env bash
#
# install.sh install | uninstall | deb | lay-out | libraries: puts what `./dev program` has built where it belongs, takes it
# away again, or makes a Debian package of it. DESTDIR=DIR puts DIR in front of every path. For an image, lay-out
# does no more than put files there, and libraries prints the packages that the program is linked with.
#
# Nothing is started, and nothing of the user's is removed: the settings in /etc/retort.ini and the
# sessions in /var/lib/retort stay.

set -euo pipefail

self=$(readlink -f "${BASH_SOURCE[0]}")
root=${self%/deploy/*}
cd "$root"

dest=${DESTDIR:-}
prefix=${PREFIX:-/usr/local}
units=${UNITS:-/etc/systemd/system}
guest=$prefix/lib/retort

# lay_out: every file of ours, below $dest.
lay_out() {
    local unit

    rm -rf "$dest$guest"
    install -D -m 755 build/retort "$dest$prefix/bin/retort"
    install -d -m 755 "$dest$guest"
    cp -R build/guest "$dest$guest/guest"
    chmod -R u=rwX,go=rX "$dest$guest"
    for unit in retort.service retort.socket; do
        install -d "$dest$units"
        sed "s|/usr/local/bin/retort|$prefix/bin/retort|" "deploy/$unit" >"$dest$units/$unit"
        chmod 644 "$dest$units/$unit"
    done
}

reload() {
    [[ -z $dest && -d /run/systemd/system ]] || return 0
    systemctl daemon-reload
}

install_it() {
    lay_out
    [[ -e $dest/etc/retort.ini ]] || install -D -m 644 deploy/retort.ini "$dest/etc/retort.ini"
    reload
    cat <<END
Installed: $prefix/bin/retort. Settings: /etc/retort.ini. Try:
  retort doctor
  retort run -c '6 * 7'
  systemctl enable --now retort      # a server at http://127.0.0.1:8000, now and after each boot
'./dev uninstall' takes it away again.
END
}

uninstall_it() {
    if [[ -z $dest && -d /run/systemd/system ]]; then
        systemctl disable --now retort.service retort.socket 2>/dev/null || true
    fi
    rm -f "$dest$prefix/bin/retort" "$dest$units/retort.service" "$dest$units/retort.socket"
    rm -rf "$dest$guest" "$dest/var/cache/retort"
    reload
    echo "Uninstalled. Kept: /etc/retort.ini and /var/lib/retort, if they are there."
}

# libraries: the packages that hold what the program itself is linked with. dpkg knows the files of
# some packages below /lib, which is a link to /usr/lib.
libraries() {
    local name file

    objdump -p build/retort | awk '$1 == "NEEDED" { print $2 }' | while read -r name; do
        file=$(ldd build/retort | awk -v name="$name" '$1 == name && $3 ~ /^\// { print $3 }')
        [[ $file ]] || continue # the loader, which comes with the C library
        file=$(readlink -f "$file")
        dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}"
    done | cut -d: -f1 | sort -u | paste -sd, | sed 's/,/, /g'
}

deb() {
    local arch version tree=build/package/deb file script

    arch=$(dpkg --print-architecture)
    version=$(sed -n "s/^ *version: '\(.*\)',*$/\1/p" meson.build | head -n 1)
    file=build/package/retort_${version}_$arch.deb
    rm -rf "$tree"
    dest=$tree prefix=/usr guest=/usr/lib/retort units=/usr/lib/systemd/system lay_out
    install -D -m 644 deploy/retort.ini "$tree/etc/retort.ini"
    install -D -m 644 LICENSE "$tree/usr/share/doc/retort/copyright"
    mkdir -p "$tree/DEBIAN"
    echo /etc/retort.ini >"$tree/DEBIAN/conffiles"
    for script in postinst prerm postrm; do
        install -m 755 "deploy/deb/$script.sh" "$tree/DEBIAN/$script"
    done
    cat >"$tree/DEBIAN/control" <<END
Package: retort
Version: $version
Architecture: $arch
Maintainer: retort <retort@localhost>
Section: net
Priority: optional
Depends: $(libraries), passwd, python3, python3-ipython, python3-matplotlib-inline
Recommends: python3-matplotlib, python3-numpy, python3-pandas, python3-pip, python3-pypdf
Description: sealed, warm Python and shell sessions for AI agents
 One program that gives every conversation a sandboxed Python of its own, over
 HTTP, MCP and the command line.
END
    dpkg-deb --root-owner-group --build "$tree" "$file" >/dev/null
    rm -rf "$tree"
    echo "Made $file. Install: apt install ./$file"
}

case ${1:-} in
install) install_it ;;
uninstall) uninstall_it ;;
deb) deb ;;
lay-out) lay_out ;;
libraries) libraries ;;
*)
    echo "usage: install.sh install | uninstall | deb | lay-out | libraries" >&2
    exit 2
    ;;
esac
