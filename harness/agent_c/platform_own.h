/* What the files of one system share. */

#ifndef PLATFORM_OWN_H
#define PLATFORM_OWN_H

#include "platform.h"

void process_keep_variables(void); /* for another process: the hello was for this one alone, and what a provider sets is for no other */
#ifdef _WIN32
wchar_t *to_wide(Arena *arena, const char *text);
bool handle_write(void *to, const void *data, size_t size);
#else
bool descriptor_write(int file, const void *data, size_t size);
#endif

#endif
