/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The target's C library may be older than the one that we are built with (a container's): what moved
 * from libdl and libpthread into libc with glibc 2.34 is taken by the version that it always had.
 * Include where any of these is called.
 */
#ifndef LIBRARY_LIBC_H
#define LIBRARY_LIBC_H

#if defined(__x86_64__) && defined(__GLIBC__)
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlinfo, dlinfo@GLIBC_2.3.3");
__asm__(".symver dladdr1, dladdr1@GLIBC_2.3.3");
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5");
__asm__(".symver pthread_attr_setstacksize, pthread_attr_setstacksize@GLIBC_2.2.5");
__asm__(".symver pthread_sigmask, pthread_sigmask@GLIBC_2.2.5");
#endif

#endif
