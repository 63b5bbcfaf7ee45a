/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the shim takes from libc: the arena, text, and the way back from a call that went wrong.
 *
 * A BUG(), or an access to memory that is not there, ends the call, not the program: a signal handler jumps
 * back to guarded(), which returns the text of the error.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "call.h"

struct shim_queue;
struct shim_queue *shim_open(const struct shim_config *config);
void shim_run(struct shim_queue *s, struct shim_call *c);
void shim_arrays(struct shim_queue *s, struct shim_extent *arrays);
void shim_print_queue(struct shim_queue *s, struct shim_print *print, struct shim_extent heap);
struct shim_parts;
struct shim_parts *shim_open_part(const struct shim_part *call);
void shim_part(struct shim_parts *p, struct shim_part *call);

/* An arena: its first bytes are this. Freed blocks are kept by size, the last one freed is used first. */
#define SHIM_SIZES 40
struct shim_arena {
	size_t bytes, all, used, numbered;
	/* One of them. */
	struct shim_queue *queue;
	struct shim_parts *parts;
	struct shim_block { struct shim_block *next; } *free[SHIM_SIZES];
	/* Objects of caches, the first one freed first. */
	struct shim_block *oldest, *latest;
	size_t waiting;
};
struct shim_head { size_t class; size_t number; };

static __thread struct shim_arena *arena;
static __thread struct shim_call *called;
/*
 * The way back from the call that is under way, and why it was taken; made once for each thread, since threads
 * have little room for variables of libraries that come late.
 */
static __thread struct way_back { sigjmp_buf back; char text[512]; } *way;
static __thread volatile sig_atomic_t inside;
/* Calls of this thread so far. */
static __thread unsigned long entered;
/* What a program did on them before. */
static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM };
static struct sigaction before[4];

_Noreturn void shim_bug(const char *file, int line, const char *what)
{
	const char *name = strrchr(file, '/');

	if (!inside)
		abort();
	if (line)
		snprintf(way->text, sizeof(way->text), "%s:%d: %s", name ? name + 1 : file, line, what);
	else
		snprintf(way->text, sizeof(way->text), "%s", what);
	siglongjmp(way->back, 1);
}
void shim_warn(const char *file, int line, const char *what) { shim_bug(file, line, what); }

_Noreturn void shim_missing(const char *name)
{
	if (!inside)
		abort();
	snprintf(way->text, sizeof(way->text), "calls %s(), which the shim does not have", name);
	siglongjmp(way->back, 1);
}

/* Room for BYTES, rounded up to a quarter of a power of two. */
static size_t class_bytes(size_t class) { return (4 + class % 4) << (class / 4 + 3); }

void shim_free(const void *p);

void *shim_alloc(size_t bytes, unsigned int gfp)
{
	size_t class = 0;
	struct shim_head *head;
	void *block;

	while (class < SHIM_SIZES && class_bytes(class) < bytes)
		class++;
	if (class < SHIM_SIZES && arena->free[class]) {
		block = arena->free[class];
		arena->free[class] = arena->free[class]->next;
	} else {
		size_t room = class < SHIM_SIZES ? class_bytes(class) : (bytes + 15) & ~15ul;

		if (arena->used + sizeof(*head) + room > arena->bytes)
			shim_bug("kmalloc", 0, "the arena of the queue is full");
		head = (void *)((char *)arena + arena->used);
		head->class = class;
		block = head + 1;
		arena->used += sizeof(*head) + room;
	}
	/* As SLUB's poisoning does: uninitialised memory must not look like zero. */
	memset(block, gfp & 1 ? 0 : 0x5a, bytes);
	return block;
}

/*
 * So many objects of caches stay free before one of them is used again: a scheduler that compares a new
 * object's address with that of one that is gone (bfq's tentative_waker_bfqq) does not take one for the other,
 * as in a kernel it may.
 */
#define SHIM_WAITING 4096

void *shim_alloc_numbered(size_t bytes, unsigned int gfp)
{
	struct shim_block *block;

	if (arena->waiting > SHIM_WAITING) {
		block = arena->oldest;
		arena->oldest = block->next;
		arena->waiting--;
		shim_free(block);
	}
	block = shim_alloc(bytes, gfp);
	((struct shim_head *)block - 1)->number = ++arena->numbered;
	return block;
}

void shim_free_numbered(void *p)
{
	struct shim_block *block = p;

	memset(block, 0x6b, class_bytes(((struct shim_head *)p - 1)->class));
	block->next = NULL;
	if (arena->waiting++)
		arena->latest->next = block;
	else
		arena->oldest = block;
	arena->latest = block;
}

unsigned long long shim_number_of(const void *object) { return ((struct shim_head *)object - 1)->number; }

void shim_free(const void *p)
{
	struct shim_block *block = (void *)p;
	struct shim_head *head = (struct shim_head *)p - 1;

	if (!p)
		return;
	if (head->class >= SHIM_SIZES)
		return;
	memset(block, 0x6b, class_bytes(head->class));
	block->next = arena->free[head->class];
	arena->free[head->class] = block;
}

/* A signal that is not of this library's: each library of a program has its handlers and its timers. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
	unsigned int i;

	for (i = 0; signals[i] != signal; i++)
		;
	if (before[i].sa_flags & SA_SIGINFO)
		before[i].sa_sigaction(signal, info, context);
	else if (signal != SIGVTALRM)
		sigaction(signal, &before[i], NULL);
}

static void fault(int signal, siginfo_t *info, void *context)
{
	if (!inside) {
		pass_on(signal, info, context);
		return;
	}
	if (signal == SIGFPE) {
		snprintf(way->text, sizeof(way->text), "a division by zero");
		siglongjmp(way->back, 1);
	}
	/* The place in the library comes last; Rust makes a line of a file of it. */
	Dl_info code = { 0 }, own = { 0 };
	unsigned long at = 0;
#ifdef __x86_64__
	at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	at = ((ucontext_t *)context)->uc_mcontext.pc;
#endif
	if (dladdr((void *)at, &code) && dladdr((void *)fault, &own) && code.dli_fbase == own.dli_fbase)
		at -= (unsigned long)code.dli_fbase;
	else
		at = 0;
	snprintf(way->text, sizeof(way->text), "access to address %#lx, where nothing is @%lx",
		 (unsigned long)info->si_addr, at);
	siglongjmp(way->back, 1);
}

/* Each second of CPU time of a thread: a call that was running a second ago does not end. */
static void tick(int signal, siginfo_t *info, void *context)
{
	static __thread unsigned long seen;

	if (info->si_value.sival_ptr != &entered)
		pass_on(signal, info, context);
	if (info->si_value.sival_ptr != &entered || !inside)
		return;
	if (seen == entered) {
		snprintf(way->text, sizeof(way->text), "the call does not end");
		siglongjmp(way->back, 1);
	}
	seen = entered;
}

static void watch(void)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM, .sigev_value.sival_ptr = &entered,
	};
	struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	timer_t timer;

	if (way)
		return;
	way = calloc(1, sizeof(*way));
	event._sigev_un._tid = gettid();
	if (!timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer))
		timer_settime(timer, 0, &second, NULL);
}

static void catch_faults(void)
{
	static bool caught;
	struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
	unsigned int i;

	if (__atomic_test_and_set(&caught, __ATOMIC_SEQ_CST))
		return;

	/* The other stack has room for one of them. */
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&action.sa_mask, signals[i]);

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		action.sa_sigaction = signals[i] == SIGVTALRM ? tick : fault;
		sigaction(signals[i], &action, &before[i]);
	}
}

/* The call that may sleep and is under way (below). */
static __thread struct shim_task *running;

/* The way back from a handler. */
static const char *failed(void)
{
	sigset_t set;
	unsigned int i;

	sigemptyset(&set);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	inside = 0;
	running = NULL;
	return way->text;
}

static void begin_arena(void *memory, size_t bytes)
{
	catch_faults();
	arena = memory;
	memset(arena, 0, sizeof(*arena));
	arena->bytes = arena->all = bytes;
	arena->used = (sizeof(*arena) + 63) & ~63ul;
}

/* Does WORK with the arena in MEMORY. Null, or the error. */
static const char *guarded(void *memory, void (*work)(void *), void *with)
{
	watch();
	arena = memory;
	entered++;
	inside = 1;
	if (sigsetjmp(way->back, 0))
		return failed();
	work(with);
	inside = 0;
	return NULL;
}

static void open_queue(void *config)
{
	arena->queue = shim_open(config);
	if (!arena->queue)
		shim_bug("shim", 0, "the scheduler refuses the queue");
}

/* Makes a queue in MEMORY. Null, or the error. */
const char *shim_create(void *memory, size_t bytes, struct shim_config *config)
{
	begin_arena(memory, bytes);
	return guarded(memory, open_queue, config);
}

/* Room at the end of the arena, zero, whose pages are taken when they are written to. */
void *shim_slots(size_t bytes)
{
	bytes = (bytes + 63) & ~63ul;
	if (arena->used + bytes > arena->bytes)
		shim_bug("shim", 0, "no room for requests, bios and tasks");
	arena->bytes -= bytes;
	return (char *)arena + arena->bytes;
}

static void call_queue(void *call)
{
	called = call;
	shim_run(arena->queue, call);
}

/* Calls the queue in MEMORY. Null, or the error. */
const char *shim_call(void *memory, struct shim_call *call) { return guarded(memory, call_queue, call); }

static void call_part(void *call)
{
	if (arena->parts)
		shim_part(arena->parts, call);
	else
		arena->parts = shim_open_part(call);
}

/* The same of a part alone; one that is not made yet is made. */
const char *shim_call_part(void *memory, size_t bytes, struct shim_part *call)
{
	if (!((struct shim_arena *)memory)->bytes)
		begin_arena(memory, bytes);
	return guarded(memory, call_part, call);
}

/*
 * Copies of a queue, for the explorer, share one arena, whose addresses are in them. Each is an image of what is
 * in use, after a list of where that was.
 */
#define EXTENTS 4
static size_t extents_of(struct shim_arena *of, struct shim_extent *extents)
{
	size_t bytes = EXTENTS * sizeof(*extents);
	unsigned int i;

	extents[0] = (struct shim_extent){ of, of->used };
	shim_arrays(of->queue, extents + 1);
	for (i = 0; i < EXTENTS; i++)
		bytes += extents[i].bytes;
	return bytes;
}

/* Copies the queue in MEMORY to IMAGE. Returns the size; without enough room nothing is copied. */
size_t shim_save(void *memory, char *image, size_t room)
{
	struct shim_extent extents[EXTENTS];
	size_t bytes = extents_of(memory, extents);
	unsigned int i;

	if (bytes > room)
		return bytes;
	memcpy(image, extents, sizeof(extents));
	image += sizeof(extents);
	for (i = 0; i < EXTENTS; image += extents[i++].bytes)
		memcpy(image, extents[i].from, extents[i].bytes);
	return bytes;
}

/* The other way. */
void shim_restore(const char *image)
{
	struct shim_extent extents[EXTENTS];
	unsigned int i;

	memcpy(extents, image, sizeof(extents));
	image += sizeof(extents);
	for (i = 0; i < EXTENTS; image += extents[i++].bytes)
		memcpy(extents[i].from, image, extents[i].bytes);
}

/* Whole words; a pointer into the arena counts as the place there. */
void shim_print_bytes(struct shim_print *print, const void *from, unsigned long bytes)
{
	const unsigned long *word = from, *end = word + bytes / sizeof(*word);
	unsigned long a = print->a ^ bytes, b = print->b, base = (unsigned long)print->arena.from;

	for (; word < end; word++) {
		unsigned long value = *word - base < print->arena.bytes ? *word - base + 1 : *word;

		a = (a << 5 ^ a >> 59 ^ value) * 0x9e3779b97f4a7c15;
		b = (b ^ value) * 0xc2b2ae3d27d4eb4f;
		b = b << 29 | b >> 35;
	}
	print->a = a;
	print->b = b;
}

/* What makes states of a queue the same: all but requests that the scheduler does not have. */
void shim_print(void *memory, unsigned long print[2])
{
	struct shim_arena *of = memory;
	struct shim_print p = { .arena = { of, of->all } };

	shim_print_queue(of->queue, &p, (struct shim_extent){ of, of->used });
	print[0] = p.a;
	print[1] = p.b;
}

/* A call that may sleep has a stack of its own, so that others are made meanwhile. */
struct shim_task {
	ucontext_t here, caller;
	void (*run)(void *);
	void *of;
	bool ended;
	char stack[16 << 10];
};

static void run_task(void)
{
	running->run(running->of);
	running->ended = true;
}
/* True: it has ended. */
bool shim_task_goes_on(struct shim_task *task)
{
	bool ended;

	running = task;
	swapcontext(&task->caller, &task->here);
	running = NULL;
	ended = task->ended;
	if (ended)
		shim_free(task);
	return ended;
}
bool shim_task_begins(struct shim_task **task, void (*run)(void *), void *of)
{
	struct shim_task *begun = *task = shim_alloc(sizeof(**task), 1);

	begun->run = run;
	begun->of = of;
	getcontext(&begun->here);
	begun->here.uc_stack.ss_sp = begun->stack;
	begun->here.uc_stack.ss_size = sizeof(begun->stack);
	begun->here.uc_link = &begun->caller;
	makecontext(&begun->here, run_task, 0);
	return shim_task_goes_on(begun);
}
void shim_task_sleeps(void)
{
	if (!running)
		shim_bug("io_schedule", 0, "sleeps in a call that must not");
	swapcontext(&running->here, &running->caller);
}

/* Text. */
unsigned long long shim_pointer(const void *p);

/* One conversion of a message, whose format is SPEC; the kernel's %p shows no address that was there. */
static int convert(char *out, size_t room, char *spec, va_list *arguments)
{
	size_t end = strlen(spec) - 1;

	switch (spec[end]) {
	case 's':
		return snprintf(out, room, spec, va_arg(*arguments, const char *));
	case 'p':
		return snprintf(out, room, "%016llx", shim_pointer(va_arg(*arguments, const void *)));
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'c':
		if (end && spec[end - 1] == 'l')
			return snprintf(out, room, spec, va_arg(*arguments, long));
		return snprintf(out, room, spec, va_arg(*arguments, int));
	}
	shim_bug("blktrace", 0, "a message with a conversion that the shim does not have");
}

/* A message, as a line. */
void shim_message(const char *format, ...)
{
	char *out = called->log + called->log_used, *end = called->log + called->log_room;
	char spec[16];
	va_list arguments;

	va_start(arguments, format);
	while (*format && out < end - 1) {
		if (*format != '%') {
			*out++ = *format++;
			continue;
		}
		size_t length = 1 + strcspn(format + 1, "dixucspn%") + 1;

		if (length >= sizeof(spec))
			shim_bug("blktrace", 0, "a message with a long conversion");
		memcpy(spec, format, length);
		spec[length] = 0;
		format += length;
		if (spec[length - 1] == '%')
			*out++ = '%';
		else
			out += convert(out, end - out, spec, &arguments);
	}
	va_end(arguments);
	if (out >= end - 1)
		shim_bug("blktrace", 0, "more messages than there is room for");
	*out++ = '\n';
	called->log_used = out - called->log;
}
struct seq_file { void *private; char *text; size_t room; size_t used; void *file; };
void seq_printf(struct seq_file *m, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (m->used < m->room)
		m->used += vsnprintf(m->text + m->used, m->room - m->used, format, arguments);
	va_end(arguments);
	if (m->used >= m->room)
		shim_bug("seq_file", 0, "a file longer than there is room for");
}
void seq_puts(struct seq_file *m, const char *text) { seq_printf(m, "%s", text); }
void seq_putc(struct seq_file *m, char c) { seq_printf(m, "%c", c); }
unsigned long long simple_strtoull(const char *text, char **end, unsigned int base)
{
	return strtoull(text, end, base);
}
int sysfs_emit(char *page, const char *format, ...)
{
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(page, 4096, format, arguments);
	va_end(arguments);
	return bytes;
}
int scnprintf(char *page, size_t size, const char *format, ...)
{
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(page, size, format, arguments);
	va_end(arguments);
	return bytes < (int)size ? bytes : (int)size - 1;
}

/* One number, perhaps followed by a newline. */
static int number(const char *text, int base, bool is_signed, long long *value)
{
	char *end;

	errno = 0;
	if (isspace((unsigned char)*text) || (*text == '-' && !is_signed))
		return -EINVAL;
	*value = is_signed ? strtoll(text, &end, base) : (long long)strtoull(text, &end, base);
	if (end == text || (*end && strcmp(end, "\n")))
		return -EINVAL;
	return errno ? -ERANGE : 0;
}
int kstrtoint(const char *text, unsigned int base, int *value)
{
	long long wide;
	int error = number(text, base, true, &wide);

	if (!error && (wide < INT_MIN || wide > INT_MAX))
		error = -ERANGE;
	if (!error)
		*value = wide;
	return error;
}
int kstrtouint(const char *text, unsigned int base, unsigned int *value)
{
	long long wide;
	int error = number(text, base, false, &wide);

	if (!error && (unsigned long long)wide > UINT_MAX)
		error = -ERANGE;
	if (!error)
		*value = wide;
	return error;
}
int kstrtoull(const char *text, unsigned int base, unsigned long long *value)
{
	return number(text, base, false, (long long *)value);
}
int kstrtoul(const char *text, unsigned int base, unsigned long *value)
{
	return number(text, base, false, (long long *)value);
}
char *strim(char *s)
{
	size_t size = strlen(s);

	while (size && isspace((unsigned char)s[size - 1]))
		s[--size] = 0;
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* Bits of an array of words. */
unsigned long find_next_bit(const unsigned long *words, unsigned long bits, unsigned long from)
{
	for (; from < bits; from++)
		if (words[from / 64] >> (from % 64) & 1)
			return from;
	return bits;
}
unsigned long find_next_zero_bit(const unsigned long *words, unsigned long bits, unsigned long from)
{
	for (; from < bits; from++)
		if (!(words[from / 64] >> (from % 64) & 1))
			return from;
	return bits;
}
