#!/bin/sh
# Before the files go: nothing of it may run on. An upgrade restarts the server afterwards.
set -e

if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
    systemctl disable --now retort.socket retort.service
fi
