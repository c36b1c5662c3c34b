#!/bin/sh
# stage.sh DIR STAMP MODULE PY...: lays out DIR as the guest's Python finds it.
#
# install(1) makes new files rather than writing into old ones, so that a zygote which
# still runs from those is not disturbed.
set -eu

dir=$1 stamp=$2 module=$3
shift 3
rm -rf "$dir/retort_guest"
mkdir -p "$dir/retort_guest"
install -m 644 "$@" "$dir/retort_guest"
install -m 755 "$module" "$dir"
touch "$stamp"
