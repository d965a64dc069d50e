# Turns the UCI configuration of OpenWrt into the configuration file of mpt.
#
#   uci export mpt | awk -f uci-to-toml.awk > /var/etc/mpt.toml
#
# Sections are tables: `control`, `daemon`, `metrics`, `web`, `tunnel`, `connection`, `path`, `interface` and `accept`.
# A connection or template belongs to the tunnel that `option tunnel` names, a path to the connection that `option
# connection` names; without the option, to the last one before it. The name of a section is its `name`, unless an
# option says otherwise. Options are keys, and `list` makes arrays; `mpt check` says what is wrong with their values.
# `reorder_max_delay` and so on, and `offloads_tso`, are keys of the tables `reorder` and `offloads`.
#
# POSIX awk, as in BusyBox: without arrays of arrays.

function fail(what) {
    printf "uci-to-toml: %s: %s\n", (FILENAME == "" || FILENAME == "-" ? "" : FILENAME " ") "line " NR, what > "/dev/stderr"
    failed = 1
    exit 1
}

# Takes the next word of `rest`, which may be quoted as in a shell, off its front.
function word(    out, c, quote) {
    sub(/^[ \t]+/, "", rest)
    out = ""
    quote = ""
    if (rest == "") return ""
    while (rest != "") {
        c = substr(rest, 1, 1)
        if (quote == "" && (c == " " || c == "\t")) break
        rest = substr(rest, 2)
        if (quote == "" && (c == "'" || c == "\"")) quote = c
        else if (quote != "" && c == quote) quote = ""
        else if (quote != "'" && c == "\\") {
            out = out substr(rest, 1, 1)
            rest = substr(rest, 2)
        } else out = out c
    }
    if (quote != "") fail("a quote is not closed")
    return out
}

# A text as TOML.
# Letter by letter, because awks differ in what `gsub` makes of backslashes.
function text(value,    out, at, c) {
    if (value ~ /[\001-\037\177]/) fail("control characters are not allowed")
    out = ""
    for (at = 1; at <= length(value); at++) {
        c = substr(value, at, 1)
        out = out (c == "\\" || c == "\"" ? "\\" c : c)
    }
    return "\"" out "\""
}

# A value as TOML: numbers and truth as such, unless the key is for text.
function toml(key, value) {
    if (key ~ /^(name|addresses|peer|networks|match|remote|local|interface|socket|user|listen|file|secret|from|local_networks)$/)
        return text(value)
    if (value ~ /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/) return value
    if (value == "true" || value == "false") return value
    return text(value)
}

# What the file says of one section, option by option.
function add_line(section, line) { lines[section] = lines[section] line "\n" }

function add(key, value, is_list,    table, at, whole) {
    if (key !~ /^[a-z][a-z0-9_]*$/) fail("`" key "` is no key")
    if (current == 0) fail("an option stands before the first section")
    if (key == "name") { name[current] = value; return }
    if (key == "enabled") { if (value == "0") disabled[current] = 1; return }
    if (key == "tunnel" && (kind[current] == "connection" || kind[current] == "accept")) { of[current] = value; return }
    if (key == "connection" && (kind[current] == "path" || kind[current] == "interface")) { of[current] = value; return }
    whole = key
    table = ""
    for (at = 1; at <= tables; at++)
        if (index(key, sub_table[at] "_") == 1 && kind[current] != "daemon") {
            table = sub_table[at]
            key = substr(key, length(table) + 2)
        }
    if (is_list) {
        if ((current, whole) in scalar) fail("`" whole "` is an option and a list")
        if (!((current, whole) in items)) order[current] = order[current] " " whole
        items[current, whole] = items[current, whole] ((current, whole) in items && items[current, whole] != "" ? ", " : "") toml(key, value)
        in_table[current, whole] = table
        key_of[current, whole] = key
        return
    }
    if ((current, whole) in items) fail("`" whole "` is an option and a list")
    if (!((current, whole) in scalar)) order[current] = order[current] " " whole
    # As for UCI itself, the last one counts.
    scalar[current, whole] = toml(key, value)
    in_table[current, whole] = table
    key_of[current, whole] = key
}

# Writes the options of a section that stand in `table`, as `KEY = VALUE` lines or within braces.
function options(section, table, inline,    keys, count, at, key, out, value) {
    count = split(order[section], keys, " ")
    out = ""
    for (at = 1; at <= count; at++) {
        key = keys[at]
        if (in_table[section, key] != table) continue
        value = (section, key) in items ? "[" items[section, key] "]" : scalar[section, key]
        if (inline) out = out (out == "" ? "" : ", ") key_of[section, key] " = " value
        else out = out key_of[section, key] " = " value "\n"
    }
    return out
}

function body(section, named,    at, inner) {
    if (named) {
        if (name[section] == "") { print "uci-to-toml: a section `" kind[section] "` has no name" > "/dev/stderr"; failed = 1; exit 1 }
        printf "name = %s\n", text(name[section])
    }
    printf "%s", options(section, "", 0)
    for (at = 1; at <= tables; at++) {
        inner = options(section, sub_table[at], 1)
        if (inner != "") printf "%s = { %s }\n", sub_table[at], inner
    }
}

BEGIN { tables = split("reorder offloads match auth", sub_table, " "); current = 0; sections = 0; failed = 0 }

{ sub(/\r$/, "") }
/^[ \t]*(#.*)?$/ { next }
/^[ \t]*package([ \t]|$)/ { next }
/^[ \t]*config([ \t]|$)/ {
    rest = $0
    word()
    current = ++sections
    kind[current] = word()
    name[current] = word()
    if (kind[current] !~ /^(control|daemon|metrics|web|tunnel|connection|path|interface|accept)$/)
        fail("there is no section `" kind[current] "`")
    if (kind[current] == "tunnel") last_tunnel = current
    if (kind[current] == "connection") last_connection = current
    before[current] = kind[current] ~ /^(connection|accept)$/ ? last_tunnel : last_connection
    next
}
/^[ \t]*(option|list)([ \t]|$)/ {
    rest = $0
    is_list = word() == "list"
    key = word()
    sub(/^[ \t]+/, "", rest)
    value = word()
    sub(/^[ \t]+/, "", rest)
    if (rest != "" && rest !~ /^#/) fail("there is more than a value")
    add(key, value, is_list)
    next
}
{ fail("not UCI") }

# The number of the section of a kind that a section belongs to, or none.
function owner(section, wanted,    at) {
    if (of[section] == "") return before[section]
    for (at = 1; at <= sections; at++) if (kind[at] == wanted && name[at] == of[section]) return at
    printf "uci-to-toml: there is no %s `%s`\n", wanted, of[section] > "/dev/stderr"
    failed = 1
    exit 1
}

END {
    if (failed) exit 1
    print "# Written from /etc/config/mpt: change that."
    for (at = 1; at <= sections; at++)
        if (kind[at] ~ /^(control|daemon|metrics|web)$/ && !disabled[at]) {
            printf "\n[%s]\n", kind[at]
            body(at, 0)
        }
    for (tunnel = 1; tunnel <= sections; tunnel++) {
        if (kind[tunnel] != "tunnel" || disabled[tunnel]) continue
        print "\n[[tunnel]]"
        body(tunnel, 1)
        for (at = 1; at <= sections; at++) {
            if (kind[at] !~ /^(connection|accept)$/ || disabled[at] || owner(at, "tunnel") != tunnel) continue
            printf "\n[[tunnel.%s]]\n", kind[at]
            body(at, 1)
            if (kind[at] != "connection") continue
            for (path = 1; path <= sections; path++) {
                if (disabled[path] || kind[path] !~ /^(path|interface)$/ || owner(path, "connection") != at) continue
                if (kind[path] == "path") {
                    print "\n[[tunnel.connection.path]]"
                    body(path, 1)
                } else {
                    printf "\n[tunnel.connection.interface.%s]\n", text(name[path])
                    body(path, 0)
                }
            }
        }
    }
}
