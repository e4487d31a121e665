#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""O-02, O-03: is a JSON, HTML, SVG or folded output still readable, and are the odd names in it harmless?
usage: check_text.py FILE...   (by suffix: .json, .html, .svg, anything else: folded)
JSON must load; HTML may contain no script element that a name brought along and must parse;
folded lines must be "frames<space>integer" without control characters; all must be valid UTF-8."""
import html.parser
import json
import re
import sys
import xml.dom.minidom

bad = 0


def wrong(path, text):
    global bad
    bad = 1
    print("%s: %s" % (path, text))


class Scripts(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = False
        self.scripts = []
        self.titles = 0

    def handle_starttag(self, tag, attrs):
        if tag == "script":
            self.open = True
            self.scripts.append("")
        self.titles += tag == "title"

    def handle_endtag(self, tag):
        if tag == "script":
            self.open = False

    def handle_data(self, data):
        if self.open:
            self.scripts[-1] += data


for path in sys.argv[1:]:
    raw = open(path, "rb").read()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as err:
        wrong(path, "not valid UTF-8: %s" % err)
        text = raw.decode("utf-8", "replace")
    if path.endswith(".json"):
        try:
            json.loads(text)
        except (ValueError, RecursionError) as err:
            wrong(path, "JSON does not load: %s" % err)
    elif path.endswith(".svg"):
        try:
            xml.dom.minidom.parseString(raw)
        except Exception as err:
            wrong(path, "XML does not parse: %s" % err)
    elif path.endswith(".html"):
        p = Scripts()
        p.feed(text)
        for s in p.scripts:
            if s.strip().startswith('document.title="x"'):
                wrong(path, "a function name became a script")
        if p.titles > 1:
            wrong(path, "more than one title")
    else:
        for number, line in enumerate(text.split("\n"), 1):
            if not line and number > text.count("\n"):
                continue
            if not re.fullmatch(r"\S.* [0-9]+", line):
                wrong(path, "line %d is not a folded line: %.80r" % (number, line))
            elif re.search(r"[\x00-\x08\x0b-\x1f\x7f]", line):
                wrong(path, "line %d has a control character" % number)
            elif ";;" in line or line.startswith(";"):
                wrong(path, "line %d has a frame without a name" % number)
print("wrong" if bad else "good")
sys.exit(bad)
