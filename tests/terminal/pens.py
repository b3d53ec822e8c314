"""Text attributes and colours as sequences spell them: SGR in both of its
spellings, the colour specifications of X11. Pure functions.
"""

import re

from grid import (
    BLINK, BOLD, CONCEAL, DEFAULT, FAINT, INVERSE, ITALIC, OVERLINE, PROTECTED,
    RGB, STRIKE,
)

PARAM_MAX = 65535


def number(text, default=0):
    """A parameter; DEFAULT when it was left out."""
    return min(int(text), PARAM_MAX) if text else default


FLAG_ON = {1: BOLD, 2: FAINT, 3: ITALIC, 5: BLINK, 6: BLINK, 7: INVERSE,
           8: CONCEAL, 9: STRIKE, 53: OVERLINE}
FLAG_OFF = {22: BOLD | FAINT, 23: ITALIC, 25: BLINK, 27: INVERSE, 28: CONCEAL,
            29: STRIKE, 55: OVERLINE}


def apply_sgr(pen, params):
    """The pen after `CSI params m`."""
    fg, bg, flags, ul, ul_colour, link = pen
    parts = params.split(";")
    i = 0
    while i < len(parts):
        sub = parts[i].split(":")
        n = number(sub[0])
        i += 1
        if n == 0:
            fg = bg = ul_colour = DEFAULT
            flags, ul = flags & PROTECTED, 0
        elif n in FLAG_ON:
            flags |= FLAG_ON[n]
        elif n in FLAG_OFF:
            flags &= ~FLAG_OFF[n]
        elif n == 4:
            style = number(sub[1], 0) if len(sub) > 1 else 1
            ul = style if style <= 5 else ul
        elif n == 21:
            ul = 2
        elif n == 24:
            ul = 0
        elif 30 <= n <= 37:
            fg = n - 30
        elif 40 <= n <= 47:
            bg = n - 40
        elif 90 <= n <= 97:
            fg = n - 82
        elif 100 <= n <= 107:
            bg = n - 92
        elif n in (39, 49, 59):
            fg = DEFAULT if n == 39 else fg
            bg = DEFAULT if n == 49 else bg
            ul_colour = DEFAULT if n == 59 else ul_colour
        elif n in (38, 48, 58):
            colour, used = extended(sub, parts[i:])
            i += used
            if colour is not None:
                fg = colour if n == 38 else fg
                bg = colour if n == 48 else bg
                ul_colour = colour if n == 58 else ul_colour
    return type(pen)(fg, bg, flags, ul, ul_colour, link)


def extended(sub, rest):
    """(colour or None, parts used) of SGR 38, 48, 58 in either spelling."""
    if len(sub) > 1:
        kind, values = number(sub[1]), sub[2:]
        if kind == 5 and values:
            n = number(values[0])
            return (n if n < 256 else None), 0
        if kind == 2 and len(values) >= 3:
            # with an empty or given colour space there are four
            rgb = values[1:4] if len(values) > 3 else values
            return rgb_of(rgb), 0
        return None, 0
    kind = number(rest[0]) if rest else 0
    if kind == 5:
        n = number(rest[1]) if len(rest) > 1 else 256
        return (n if n < 256 else None), 2
    if kind == 2:
        return (rgb_of(rest[1:4]) if len(rest) > 3 else None), 4
    return None, 1 if rest else 0


def rgb_of(values):
    r, g, b = (number(v) for v in values)
    if max(r, g, b) > 255:
        return None
    return RGB | r << 16 | g << 8 | b


COLOUR_NAMES = {"black": 0, "red": 0xff0000, "green": 0x00ff00,
                "blue": 0x0000ff, "white": 0xffffff, "yellow": 0xffff00,
                "cyan": 0x00ffff, "magenta": 0xff00ff}


def parse_colour(text):
    """0xrrggbb of `#rgb`, `#rrggbb`..., `rgb:r/g/b`; None when it is none."""
    m = re.fullmatch(r"rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
                     r"/([0-9a-fA-F]{1,4})", text)
    if m:
        out = 0
        for part in m.groups():
            value = int(part, 16) * 255 // (16 ** len(part) - 1)
            out = out << 8 | value
        return out
    m = re.fullmatch(r"#([0-9a-fA-F]+)", text)
    if m and len(m[1]) in (3, 6, 9, 12):
        n = len(m[1]) // 3
        out = 0
        for i in range(3):
            digits = m[1][i * n:(i + 1) * n]
            out = out << 8 | int((digits + "0")[:2], 16)
        return out
    return COLOUR_NAMES.get(text.lower())
