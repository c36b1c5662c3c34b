#!/bin/sh
# stage.sh PYTHON DIR STAMP MODULE FILE...: lays out DIR as the guest's Python finds it, with bytecode
# for a Python of the version of PYTHON. Other versions compile the sources at each start.
#
# install(1) makes new files rather than writing into old ones, so that a zygote which
# still runs from those is not disturbed.
set -eu

python=$1 dir=$2 stamp=$3 module=$4
shift 4
rm -rf "$dir/retort_guest" "${dir:?}/bin"
mkdir -p "$dir/retort_guest" "${dir:?}/bin/last"
for file; do
    case $file in
    */bin/last/*) install -m 755 "$file" "$dir/bin/last" ;;
    */bin/*) install -m 755 "$file" "$dir/bin" ;;
    *) install -m 644 "$file" "$dir/retort_guest" ;;
    esac
done
install -m 755 "$module" "$dir"
"$python" -m compileall -q --invalidation-mode unchecked-hash "$dir/retort_guest"
touch "$stamp"
