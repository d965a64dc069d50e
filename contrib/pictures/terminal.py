"""Reads what `tmux capture-pane -e -p` prints, and writes it as a page that looks like the terminal.

Use: terminal.py < CAPTURED > PAGE.html     Prints the size of the picture, as WIDTH,HEIGHT, on standard error.
"""

import html
import re
import sys

# The sixteen colours, and the rest of the 256 by their formula (ECMA-48, SGR 38 and 48; xterm's palette).
NAMED = ("#1d1f21 #cc6666 #8abe5d #e0b34f #6a9fd8 #b294bb #5fb3b3 #c5c8c6 "
         "#7a7f85 #e06c75 #9fd86b #f0c674 #81b7ef #c9a8d6 #7fd0d0 #ffffff").split()
BACKGROUND, FOREGROUND = "#1d1f21", "#d7dadb"
CELL, LINE, MARGIN = 7.826, 17, 12


def palette(number):
    if number < 16:
        return NAMED[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"rgb({grey},{grey},{grey})"
    parts = [(number - 16) // step % 6 for step in (36, 6, 1)]
    return "rgb({},{},{})".format(*(0 if part == 0 else 55 + 40 * part for part in parts))


def colour(codes):
    """The colour that follows a 38 or 48."""
    if codes and codes[0] == 5:
        number = codes[1]
        del codes[:2]
        return palette(number)
    rgb = codes[1:4]
    del codes[:4]
    return "rgb({},{},{})".format(*rgb)


def apply(style, codes):
    while codes:
        code = codes.pop(0)
        if code == 0:
            style.clear()
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 2:
            style["opacity"] = ".65"
        elif code == 7:
            style["reverse"] = True
        elif code in (22, 27):
            for key in {22: ("font-weight", "opacity"), 27: ("reverse",)}[code]:
                style.pop(key, None)
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style["color"] = palette(code - 30 if code < 90 else code - 82)
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style["background"] = palette(code - 40 if code < 100 else code - 92)
        elif code == 38:
            style["color"] = colour(codes)
        elif code == 48:
            style["background"] = colour(codes)
        elif code == 39:
            style.pop("color", None)
        elif code == 49:
            style.pop("background", None)


def css(style):
    style = dict(style)
    if style.pop("reverse", False):
        style["color"], style["background"] = (style.get("background", BACKGROUND),
                                               style.get("color", FOREGROUND))
    return ";".join(f"{key}:{value}" for key, value in style.items())


def main():
    text = sys.stdin.read().rstrip("\n").replace("\x0f", "")
    style, out, width, lines = {}, [], 0, text.split("\n")
    for line in lines:
        cells = 0
        for part in re.split(r"(\x1b\[[0-9;:]*m)", line):
            if part.startswith("\x1b["):
                codes = re.split("[;:]", part[2:-1])
                apply(style, [int(code or 0) for code in codes])
            elif part:
                out.append(f'<span style="{css(style)}">{html.escape(part)}</span>')
                cells += len(part)
        out.append("\n")
        width = max(width, cells)
    print(f"<!doctype html><meta charset=utf-8><style>body{{margin:{MARGIN}px;background:{BACKGROUND}}}"
          f"pre{{margin:0;color:{FOREGROUND};font:13px/{LINE}px 'DejaVu Sans Mono',monospace}}</style>"
          f"<pre>{''.join(out)}</pre>")
    print(f"{round(width * CELL) + 2 * MARGIN},{len(lines) * LINE + 2 * MARGIN}", file=sys.stderr)


main()
