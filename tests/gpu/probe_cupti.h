/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CUPTI by dlopen: the independent reference of the counting runs, nothing else uses it. */
#ifndef PROBE_CUPTI_H
#define PROBE_CUPTI_H

/* 0 or negative. PROBE_CUPTI names the library; else the loader's search path decides. */
int probe_cupti_load(void);
int probe_cupti_subscribe(void);
int probe_cupti_enable_driver_domain(void);
int probe_cupti_unsubscribe(void);
int probe_cupti_kernels(int on);
int probe_cupti_flush(void);
int probe_cupti_finalize(void);
long probe_cupti_callbacks(void);
long probe_cupti_records(void);
/* Kernel records by name, memory operations by kind, to the file PROBE_OUT or stdout. */
void probe_cupti_report(void);

#endif
