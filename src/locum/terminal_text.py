r"""Text that a terminal shows instead of obeying.

Programs, model folders and configurations are other people's text. Escape sequences in it could clear
the screen, change the window's title or reorder a line, so whatever is shown passes through here.

>>> printable("a\x1b[2Jb\u202ec")
'a\\x1b[2Jb\\u202ec'
>>> printable("one\ntwo\x07", keep="\n")
'one\ntwo\\x07'
>>> printable_json('{"name": "\x9b"}')
'{"name": "\\u009b"}'
"""

from __future__ import annotations

import json
import re

#: Control characters (C0, DEL, C1), line and paragraph separators, bidirectional and other invisible
#: formatting, tags, unpaired surrogates. The joiners U+200C and U+200D stay: emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def printable(text: str, keep: str = "") -> str:
    r"""Write control characters of ``text`` as escapes such as ``\x1b``, except those in ``keep``."""
    return _UNSAFE.sub(lambda match: match[0] if match[0] in keep else _escaped(match[0]), text)


def printable_json(text: str) -> str:
    r"""Write control characters of a JSON ``text`` as JSON escapes (``\u009b``): it stays JSON."""
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
