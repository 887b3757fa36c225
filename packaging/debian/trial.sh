#!/bin/sh
# Installs a package into a copy of this system that nobody else sees, uses its service, and removes it.
#
#   trial.sh PACKAGE FOLDER
#
# 'cargo xtask test' runs it in namespaces of its own for mounts, processes and networks. The exit code is 4
# where the system does not let it have such a copy.
set -eu

main() {
    package=$1 folder=$2
    mount -t tmpfs tmpfs "$folder" || exit 4
    mkdir "$folder/upper" "$folder/work" "$folder/root"
    mount -t overlay overlay \
        -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root" || exit 4
    mount --rbind /dev "$folder/root/dev"
    mount -t proc proc "$folder/root/proc"
    mount -t tmpfs tmpfs "$folder/root/run"
    mount -t tmpfs tmpfs "$folder/root/tmp"
    ip link set lo up
    cp "$package" "$folder/root/tmp/package.deb"
    cp "$0" "$folder/root/tmp/trial.sh"
    chroot "$folder/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive sh /tmp/trial.sh inside
    left=$(find "$folder/upper" -name '*catraca*')
    [ -z "$left" ] || fail "something is left: $left"
}

fail() {
    echo "trial: $*" >&2
    exit 1
}

inside() {
    [ ! -e /usr/bin/catraca ] || exit 4
    without_systemd
    with_systemd
}

without_systemd() {
    dpkg --install /tmp/package.deb >/tmp/log 2>&1 || fail "not installed: $(cat /tmp/log)"
    catraca config check /etc/catraca/catraca.toml >/dev/null
    [ "$(stat -c '%U:%G %a' /var/lib/catraca)" = 'catraca:catraca 750' ] || fail 'its data is not its own'
    gzip -t /usr/share/man/man1/catraca-node.1.gz
    dpkg --verify catraca || fail 'files are not as packed'
    use
    # What an administrator has changed outlives an upgrade and a removal.
    echo '# changed' >>/etc/catraca/catraca.toml
    dpkg --install /tmp/package.deb >/tmp/log 2>&1 || fail "not upgraded: $(cat /tmp/log)"
    use
    dpkg --remove catraca >/tmp/log 2>&1 || fail "not removed: $(cat /tmp/log)"
    [ ! -e /usr/bin/catraca ] || fail 'the program is left'
    [ -n "$(ls -A /var/lib/catraca)" ] || fail 'a removal has removed its data'
    [ "$(tail -n 1 /etc/catraca/catraca.toml)" = '# changed' ] || fail 'the change is lost'
    is_purged
}

# The command of the unit, as the user of the unit.
use() {
    start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/catraca.service)
    install -d -o catraca -g catraca /run/catraca
    # As it is written: words and no quotes.
    setpriv --reuid catraca --regid catraca --clear-groups --no-new-privs \
        env -i USER=catraca PATH=/usr/bin:/bin $start >/tmp/node 2>&1 &
    node=$!
    for _ in $(seq 600); do
        if catraca status >/dev/null 2>&1; then break; fi
        sleep 0.1
    done
    said=$(catraca lock deploy -- sh -c 'echo "inside, fence ${CATRACA_FENCE:+known}"') || true
    [ "$said" = 'inside, fence known' ] || fail "no lock: $said $(cat /tmp/node)"
    kill -TERM $node
    wait $node || fail "it did not stop in order: $(cat /tmp/node)"
}

is_purged() {
    dpkg --purge catraca >/tmp/log 2>&1 || fail "not purged: $(cat /tmp/log)"
    if getent passwd catraca || getent group catraca; then fail 'its user is left'; fi
    [ ! -e /var/lib/catraca ] && [ ! -e /etc/catraca ] || fail 'its files are left'
}

# A systemd that writes down what it is told, and runs nothing.
with_systemd() {
    mkdir -p /run/systemd/system
    # Machines that build things often forbid packages to start services.
    rm -f /usr/sbin/policy-rc.d
    mv /usr/bin/systemctl /usr/bin/systemctl.real
    cat >/usr/bin/systemctl <<'END'
#!/bin/sh
echo "$@" >>/tmp/told
case "$*" in
*is-enabled*) echo enabled ;;
*preset* | *enable* | *disable*) exec systemctl.real "$@" ;;
esac
END
    chmod 755 /usr/bin/systemctl
    is_told 'start catraca.service' --install /tmp/package.deb
    [ -e /etc/systemd/system/multi-user.target.wants/catraca.service ] || fail 'it is not enabled'
    is_told 'restart catraca.service' --install /tmp/package.deb
    is_told 'stop catraca.service' --remove catraca
    is_purged
    [ ! -L /etc/systemd/system/multi-user.target.wants/catraca.service ] || fail 'it is still enabled'
}

is_told() {
    what=$1
    shift
    : >/tmp/told
    dpkg "$@" >/tmp/log 2>&1 || fail "dpkg $*: $(cat /tmp/log)"
    grep -q "$what" /tmp/told || fail "dpkg $*: systemd was not told '$what' but: $(cat /tmp/told)"
}

if [ "$1" = inside ]; then inside; else main "$@"; fi
