#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""O-05: can a reader of the SQLite output work with it, whatever was recorded? usage: check_sqlite.py FILE [--nsys]
Checks: integrity; valid UTF-8 in every text column; columns named start and end hold integers with
start <= end; ids called *Id or *Name that lead to a StringIds table (if there is one) resolve.
With --nsys also: the tables and columns that readers of Nsight-Systems-like exports select from exist, even if empty."""
import sqlite3
import sys

db = sqlite3.connect("file:%s?mode=ro" % sys.argv[1], uri=True)
db.text_factory = bytes
bad = []
if db.execute("pragma integrity_check").fetchone()[0] != b"ok":
    bad.append("integrity check fails")
tables = [t.decode() for (t,) in db.execute("select name from sqlite_master where type in ('table','view') order by 1")]
columns = {t: [c[1].decode() for c in db.execute('pragma table_info("%s")' % t)] for t in tables}
for t in tables:
    count = db.execute('select count(*) from "%s"' % t).fetchone()[0]
    print("%8d %s" % (count, t))
    for c in columns[t]:
        for (v,) in db.execute('select "%s" from "%s" where typeof("%s")=\'text\'' % (c, t, c)):
            try:
                v.decode("utf-8")
            except UnicodeDecodeError:
                bad.append("%s.%s is not UTF-8: %r" % (t, c, v[:60]))
                break
    if {"start", "end"} <= set(columns[t]):
        n = db.execute('select count(*) from "%s" where "end" is not null and ("end"<start or typeof(start)<>\'integer\')' % t).fetchone()[0]
        if n:
            bad.append("%s: %d rows with end before start or times that are no integers" % (t, n))
        n = db.execute('select count(*) from "%s" where "end"=0' % t).fetchone()[0]
        if n:
            bad.append("%s: %d rows end at 0" % (t, n))
if "StringIds" in tables:
    for t in tables:
        for c in columns[t]:
            if c in ("nameId", "shortName", "demangledName", "mangledName", "textId"):
                n = db.execute('select count(*) from "%s" a where a."%s" is not null and typeof(a."%s")=\'integer\' and not exists '
                               '(select 1 from StringIds s where s.id=a."%s")' % (t, c, c, c)).fetchone()[0]
                if n:
                    bad.append("%s.%s: %d ids lead nowhere" % (t, c, n))
if "--nsys" in sys.argv:
    wanted = {
        "StringIds": ["id", "value"],
        "CUPTI_ACTIVITY_KIND_KERNEL": ["start", "end", "deviceId", "streamId", "correlationId", "shortName", "demangledName", "gridX", "blockX"],
        "CUPTI_ACTIVITY_KIND_MEMCPY": ["start", "end", "bytes", "copyKind"],
        "CUPTI_ACTIVITY_KIND_RUNTIME": ["start", "end", "globalTid", "correlationId", "nameId"],
        "NVTX_EVENTS": ["start", "end", "eventType", "text", "textId", "globalTid"],
        "TARGET_INFO_GPU": ["id", "name"],
    }
    for t, cs in wanted.items():
        for c in cs if t in tables else []:
            if c not in columns[t]:
                bad.append("%s has no column %s" % (t, c))
        if t not in tables:
            bad.append("table %s is missing" % t)
for b in bad[:40]:
    print("WRONG: " + b)
sys.exit(1 if bad else 0)
