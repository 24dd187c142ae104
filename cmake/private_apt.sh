# shellcheck shell=bash
# Packages of another release, or sources, from where the system has its own: into folders of ours, with nothing of the system
# changed and nobody needing to be root. Source this file, do not run it.

# The system's code name and those of the releases after it, in order.
suites() {
    local own list
    own=$(. /etc/os-release && echo "${UBUNTU_CODENAME:-${DEBIAN_CODENAME:-${VERSION_CODENAME:-}}}")
    for list in 'bookworm trixie forky' 'jammy noble plucky questing resolute'; do
        list=" $list "
        if [[ $own && $list == *" $own "* ]]; then
            echo "$own ${list#*" $own "}"
        fi
    done
}

# Both filters print those of the system's entries that are for exactly the suite OWN, turned to SUITE, for
# packages and for sources. This drops security and update suites, and most of the entries of others.
lines_for() {
    awk -v own="$1" -v suite="$2" '
        !/^[ \t]*deb(-src)?[ \t]/ { next }
        {
            sub(/#.*/, ""); sub(/^[ \t]*deb(-src)?[ \t]+/, ""); sub(/[ \t]+$/, "")
            options = ""
            if (match($0, /^\[[^]]*\][ \t]*/)) { options = substr($0, 1, RLENGTH); $0 = substr($0, RLENGTH + 1) }
            if ($2 != own || $1 ~ /^cdrom:/ || (" " $0 " ") !~ /[ \t]main[ \t]/) next
            $2 = suite
            if (!seen[$0]++) printf "deb %s%s\ndeb-src %s%s\n", options, $0, options, $0
        }' "${@:3}" /dev/null
}
paragraphs_for() {
    awk -v own="$1" -v suite="$2" '
        function finish() {
            if (keep && (" " suites " ") ~ ("[ \t]" own "[ \t]") && (" " components " ") ~ /[ \t]main[ \t]/)
                printf "Types: deb deb-src\nSuites: %s\n%s\n", suite, rest
            keep = 1; suites = components = rest = key = ""
        }
        BEGIN { finish() }
        FNR == 1 || /^[ \t]*$/ { finish() }
        /^[ \t]*$/ || /^#/ { next }
        /^[^ \t]/ { key = tolower($0); sub(/[ \t]*:.*/, "", key) }
        {
            value = $0; sub(/^[^ \t:]+[ \t]*:/, "", value)
            if (key == "suites") { suites = suites " " value; next }
            if (key == "types") next
            if (key == "components") components = components " " value
            if (key == "enabled" && tolower(value) ~ /no|false|0|off/) keep = 0
            rest = rest $0 "\n"
        }
        END { finish() }' "${@:3}" /dev/null
}

# write_sources OWN SUITE DIR; fails if there is no such entry.
write_sources() {
    local list='' parts=''
    eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
    [[ -f $list ]] || list=/dev/null
    mkdir -p "$3"
    (
        shopt -s nullglob  # a system may have entries of one form only
        lines_for "$1" "$2" "$list" "$parts"*.list >"$3/system.list"
        paragraphs_for "$1" "$2" "$parts"*.sources >"$3/system.sources"
    )
    [[ -s $3/system.list || -s $3/system.sources ]]
}

# apt with lists, cache and sources of its own below $1: it needs no root and leaves the system's alone.
private_apt() {
    local dir=$1
    shift
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$dir/sources" \
        -o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::http::Timeout=30 "$@"
}

# private_lists OWN SUITE DIR: in DIR, the lists of SUITE by the system's entries for OWN; fails only if there is none. What is asked for
# next decides and not this update, which fails because of an entry that we do not need, and succeeds when it could reach nothing at all.
private_lists() {
    write_sources "$1" "$2" "$3/sources" || return
    mkdir -p "$3/lists/partial" "$3/cache/archives/partial"
    private_apt "$3" update >>"$3/log" 2>&1 || true
}
