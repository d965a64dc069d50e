# Sourced by scripts that fetch packages of another architecture: an apt with lists, status and sources of its own
# in the folder `$work`, so that the host's is not changed. Needs: apt-get on Debian or what is derived from it.

mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/sources" "$work/packages"
: > "$work/status"
for suite in "debian bookworm" "debian-security bookworm-security"; do
    cat >> "$work/sources/debian.sources" <<SOURCE
Types: deb
URIs: http://deb.debian.org/${suite% *}
Suites: ${suite#* }
Components: main
Architectures: amd64 arm64
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

SOURCE
done
cat > "$work/apt.conf" <<CONF
Dir::State "$work";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$work/sources";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "$(id -un)";
CONF
export APT_CONFIG=$work/apt.conf
echo "$(basename "$0"): reading package lists" >&2
apt-get update -qq >&2
