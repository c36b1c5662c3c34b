#!/bin/sh
# After the files are there: the user that the server becomes, and an upgrade of a running server.
set -e

[ "$1" = configure ] || exit 0
getent passwd retort >/dev/null ||
    useradd --system --user-group --no-create-home --home-dir /var/lib/retort --shell /usr/sbin/nologin retort
if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    [ -z "$2" ] || systemctl try-restart retort.service
fi
