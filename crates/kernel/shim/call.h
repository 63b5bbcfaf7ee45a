/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One call of a scheduler, as Rust and C see it: the operation, its arguments, its results.
 * src/call.rs has the same types.
 */
#ifndef SHIM_CALL_H
#define SHIM_CALL_H

enum shim_op {
	SHIM_MERGE_BIO, SHIM_INSERT, SHIM_DISPATCH, SHIM_HAS_WORK, SHIM_FINISH, SHIM_COMPLETED,
	SHIM_REQUEUE, SHIM_EXIT_ICQ, SHIM_TIMER, SHIM_LIMIT_DEPTH, SHIM_DEPTH_UPDATED, SHIM_STORE, SHIM_SHOW,
	SHIM_DEBUGFS, SHIM_ROTATES, SHIM_ATTRIBUTES, SHIM_EXIT, SHIM_GROUP, SHIM_TASK, SHIM_LIMIT,
	/* Of the single-queue path. */
	SHIM_SET_REQUEST, SHIM_MAY_QUEUE, SHIM_ACTIVATE, SHIM_DRAIN,
};
#define SHIM_GONE_MAX 64
#define SHIM_RUNS_MAX 64
#define SHIM_HCTXS_MAX 64
#define SHIM_NONE 0xffffffffu
#define SHIM_RANGES_MAX 16

/* A bio, or a request that is set up. */
struct shim_io {
	unsigned long sector;
	unsigned int bytes;
	/* Operation and flags, as in cmd_flags. */
	unsigned int opf;
	unsigned short ioprio, segments;
	/* A request that is bare is set up without the scheduler. */
	unsigned int hctx, task, group, flush_seq, bare;
	/* The CPU that allocated the request, or submits the bio; the number of its ctx in the hctx. */
	unsigned int ctx, index;
	unsigned long long start_ns, issue_ns;
};

/*
 * Kinds of touches. Of a request: its node of a tree or hash read and written, its list links written, other
 * fields written. Heads of the merge hash and q->last_merge read and written. Another line written.
 */
enum shim_touch {
	SHIM_VISIT, SHIM_SORT, SHIM_LINK, SHIM_OWN, SHIM_BUCKET, SHIM_BUCKET_WRITTEN, SHIM_LAST_MERGE,
	SHIM_LAST_MERGE_WRITTEN, SHIM_LINE,
};
#define SHIM_TOUCHES_MAX 4096
/* A call that makes more accesses than that follows a list or a tree in a circle. */
#define SHIM_ACCESSES_MAX 1000000

/* Limits of merges; nomerges as in sysfs. */
struct shim_limits {
	unsigned int max_sectors, max_segments, max_discard_segments, max_discard_sectors, chunk_sectors, nomerges;
};

struct shim_gone { unsigned int rq, into; };

struct shim_call {
	unsigned int op;
	/* Request or bio of the call, or SHIM_NONE; a number: of a timer, of requests, 1 for a new request. */
	unsigned int rq, bio, number;
	/* log2 of the bits of a word of the map of scheduler tags. */
	unsigned int shift;
	/* jiffies at first, and once a lock is taken. */
	unsigned long ticks, locked_ticks;
	unsigned long long ktime_ns;
	/* The call reads the clock: 1 for one that stands still, 2 for one that goes on. */
	unsigned int clock;
	/* The caller is a worker of kblockd with this pid, or 0. */
	int kworker;
	/* A task: pid, priorities of its I/O context and by its nice value. A group: parent and weight. */
	int pid;
	unsigned int ioprio, nice, group, weight;
	/* The level that the scheduler counts a request in; of an insertion one more, 0 for none. */
	unsigned int level;
	unsigned int cpu, at_head;
	struct shim_io io;
	struct shim_limits limits;
	/* Name and text of an attribute. */
	const char *name, *text;

	/* 1 if a merge, a request or work was found, or the depth is limited. */
	unsigned int found;
	/* Side of a merge (enum elv_merge); the request that took the bio, or was dispatched; a depth. */
	unsigned int side, result;
	/* The dispatched request was marked as started. */
	unsigned int started;
	/* The call took a lock other than q->queue_lock. */
	unsigned int locked;
	/* The queue must be run before the lock is dropped. */
	unsigned int run_now;
	/* The queue must be run; a timer was armed or cancelled (1, 2), and when it expires. */
	unsigned int run, timer_asked, timer;
	unsigned long long timer_after_ns;
	/* That of an inserted request. */
	unsigned long long fifo_time;
	/* The scheduler's code made so many. */
	unsigned int accesses;
	/* Elements of the arrays below; an array that is null, or has no room, is not wanted. */
	unsigned int gone_count, nomerge_count, run_count, touch_count, out_room, out_used, log_room, log_used;
	/* Requests that were absorbed, in the order of the merges, and those that will not merge any more. */
	struct shim_gone *gone;
	unsigned int *nomerge;
	/* Hctxs that are to be run. */
	unsigned int *run_hctx;
	/* What the scheduler's code read and wrote, in order: kind << 24 | number. */
	unsigned int *touches;
	/* Text of an attribute or a file of debugfs, or trace events; messages to blktrace, a line each. */
	char *out, *log;
};

struct shim_config {
	unsigned int requests, bios, nr_requests, hctxs, cpus, tasks, groups, rotational;
	/* Room for all but requests and bios. */
	unsigned long bytes;
	/* ctxs of each hctx. */
	unsigned int nr_ctx[SHIM_HCTXS_MAX];
	/* Sectors of each actuator: the first, and their number. */
	unsigned long ranges;
	struct { unsigned long first, sectors; } range[SHIM_RANGES_MAX];
};

/* A call of a part alone (parts.c). */
enum shim_part_op {
	SHIM_PART_GET, SHIM_PART_GET_BATCH, SHIM_PART_PUT, SHIM_PART_PUT_BATCH, SHIM_PART_RESIZE, SHIM_PART_SHARE,
	SHIM_PART_WAKE_ALL, SHIM_PART_WAIT, SHIM_PART_RUNS, SHIM_PART_LEAVE, SHIM_PART_ADD, SHIM_PART_DEL,
	SHIM_PART_FIND, SHIM_PART_BESIDE, SHIM_PART_COMMAND,
};
#define SHIM_BITS_MAX 64
struct shim_part {
	unsigned int op;
	/* The CPU that calls; when a part is made, their number. */
	unsigned int cpu, arg[4];
	unsigned int bit_count, bits[SHIM_BITS_MAX];
	/* A command of a script, where the part takes those. */
	const char *text;
	char *out;
	unsigned int out_room, out_used;
};


/* Bytes of an arena that are in use, and what makes states the same: 128 bits, wherever the arena is. */
struct shim_extent { void *from; unsigned long bytes; };
struct shim_print { unsigned long a, b; struct shim_extent arena; };
void shim_print_bytes(struct shim_print *print, const void *from, unsigned long bytes);
#endif
