#!/bin/sh
# When the files are gone. A purge takes sessions, keys, environments and the user as well.
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
[ "$1" = purge ] || exit 0
rm -rf /var/lib/retort /var/lib/retort-environments /var/cache/retort /run/retort
if getent passwd retort >/dev/null; then
    userdel retort
fi
