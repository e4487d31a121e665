/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The library's own thread: it begins and ends sessions, reads what launching threads leave behind,
 * and watches the collector. It lives as long as there is a session.
 */
#ifndef LIBRARY_KEEPER_H
#define LIBRARY_KEEPER_H

/* For a session that is armed already. 0 or negative errno. */
int keeper__start_armed(void);
/* Asks for a new session: one that is there is ended first. 0 or negative errno. */
int keeper__request(void);
/* There is something to see before the next tick. */
void keeper__wake(void);

#endif
