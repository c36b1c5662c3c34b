#!/bin/sh
# stage.sh DIR STAMP MODULE FILE...: lays out DIR as the guest's Python finds it.
#
# install(1) makes new files rather than writing into old ones, so that a zygote which
# still runs from those is not disturbed.
set -eu

dir=$1 stamp=$2 module=$3
shift 3
rm -rf "$dir/retort_guest" "${dir:?}/bin"
mkdir -p "$dir/retort_guest" "${dir:?}/bin"
for file; do
    case $file in
    */bin/*) install -m 755 "$file" "$dir/bin" ;;
    *) install -m 644 "$file" "$dir/retort_guest" ;;
    esac
done
install -m 755 "$module" "$dir"
touch "$stamp"
