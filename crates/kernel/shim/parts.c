/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parts of the kernel alone, in an arena of their own: a map of lib/sbitmap.c with contexts that wait for it,
 * and a tree of requests (lib/rbtree.c under elv_rb_add() of block/elevator.c). Each call prints what it
 * returns, and the whole state. Same form: src/differential/{sbitmap,rbtree}.rs.
 */
#include "call.h"

#define PART_WAITERS 64
#define PART_REQUESTS 256

struct part_waiter {
	struct sbq_wait wait;
	bool is_task, asleep;
	unsigned int number;
};

struct shim_parts {
	struct sbitmap_queue sbq;
	/* As it was created. */
	unsigned int map_nr;
	struct part_waiter waiters[2 * PART_WAITERS];
	struct rb_root root;
	struct request rqs[PART_REQUESTS];
};

void shim_begin_part(u32 random);
static __thread struct shim_part *part;

static void say(const char *format, unsigned long value)
{
	part->out_used += scnprintf(part->out + part->out_used, part->out_room - part->out_used, format, value);
}

static void woken(struct part_waiter *w) { say(w->is_task ? " task %lu" : " hctx %lu", w->number); }

/* What autoremove_wake_function() does for a task: one that runs is passed over, and keeps its entry. */
static int part_wake_task(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct part_waiter *w = container_of(entry, struct part_waiter, wait.wait);

	if (!w->asleep)
		return 0;
	w->asleep = false;
	list_del_init(&entry->entry);
	woken(w);
	return 1;
}

/* What the wake functions of hctxs do. */
static int part_wake_hctx(wait_queue_entry_t *entry, unsigned int mode, int flags, void *key)
{
	struct part_waiter *w = container_of(entry, struct part_waiter, wait.wait);

	sbitmap_del_wait_queue(&w->wait);
	woken(w);
	return 1;
}

static struct shim_parts *part_open(const unsigned int *arg)
{
	struct shim_parts *p = kzalloc(sizeof(*p), GFP_KERNEL);
	unsigned int i;

	p->root = RB_ROOT;
	for (i = 0; i < PART_REQUESTS; i++) {
		p->rqs[i].shim_id = i;
		RB_CLEAR_NODE(&p->rqs[i].rb_node);
	}
	for (i = 0; i < 2 * PART_WAITERS; i++) {
		struct part_waiter *w = &p->waiters[i];

		w->is_task = i < PART_WAITERS;
		w->number = i % PART_WAITERS;
		init_waitqueue_func_entry(&w->wait.wait, w->is_task ? part_wake_task : part_wake_hctx);
		INIT_LIST_HEAD(&w->wait.wait.entry);
	}
	if (!arg[0])
		return p;
	/* Depth, whether round robin, min_shallow_depth, and what the hints are drawn from. */
	shim_begin_part(arg[3]);
	BUG_ON(sbitmap_queue_init_node(&p->sbq, arg[0], -1, arg[1], GFP_KERNEL, 0));
	if (arg[2])
		sbitmap_queue_min_shallow_depth(&p->sbq, arg[2]);
	p->map_nr = p->sbq.sb.map_nr;
	return p;
}

static void show_map(struct shim_parts *p)
{
	struct sbitmap_queue *sbq = &p->sbq;
	struct sbq_wait *wait;
	unsigned int i;

	say("\ndepth %lu", sbq->sb.depth);
	say(" shift %lu", sbq->sb.shift);
	say(" words %lu", sbq->sb.map_nr);
	say(" batch %lu", sbq->wake_batch);
	say(" index %lu", atomic_read(&sbq->wake_index));
	say(" active %lu", atomic_read(&sbq->ws_active));
	say(" completed %lu", atomic_read(&sbq->completion_cnt));
	say(" promised %lu", atomic_read(&sbq->wakeup_cnt));
	say(" used %lu", sbitmap_weight(&sbq->sb));
	say(sbitmap_any_bit_set(&sbq->sb) ? " any" : " none", 0);
	say("\nmap", 0);
	for (i = 0; i < p->map_nr; i++) {
		say(" %lx", sbq->sb.map[i].word);
		say("/%lx", sbq->sb.map[i].cleared);
	}
	say("\nhints", 0);
	for (i = 0; i < shim_cpus; i++)
		say(" %lu", *per_cpu_ptr(sbq->sb.alloc_hint, i));
	for (i = 0; i < SBQ_WAIT_QUEUES; i++) {
		say("\nqueue %lu:", i);
		list_for_each_entry(wait, &sbq->ws[i].wait.head, wait.entry)
			woken(container_of(wait, struct part_waiter, wait));
	}
}

static void show_below(struct rb_node *node)
{
	if (!node) {
		say(" -", 0);
		return;
	}
	say(" (%lu", rb_entry(node, struct request, rb_node)->shim_id);
	say(node->__rb_parent_color & 1 ? "b" : "r", 0);
	BUG_ON(node->rb_left && rb_parent(node->rb_left) != node);
	BUG_ON(node->rb_right && rb_parent(node->rb_right) != node);
	if (node->rb_left || node->rb_right) {
		show_below(node->rb_left);
		show_below(node->rb_right);
	}
	say(")", 0);
}

static void say_request(struct rb_node *node)
{
	if (node)
		say(" %lu", rb_entry(node, struct request, rb_node)->shim_id);
	else
		say(" -", 0);
}

/* Whatever least depth its owner has named. */
static long part_get_shallow(struct sbitmap_queue *sbq, unsigned int depth)
{
	unsigned int least = sbq->min_shallow_depth;
	int bit;

	sbq->min_shallow_depth = 0;
	bit = sbitmap_queue_get_shallow(sbq, depth);
	sbq->min_shallow_depth = least;
	return bit;
}

void shim_part(struct shim_parts *p, struct shim_part *call)
{
	const unsigned int *arg = call->arg;
	struct part_waiter *w = &p->waiters[arg[1] % (2 * PART_WAITERS)];
	struct request *rq = &p->rqs[arg[0] % PART_REQUESTS];
	struct sbitmap_queue *sbq = &p->sbq;
	unsigned int offset = 0;
	unsigned long bits;

	part = call;
	shim_begin_part(0);
	shim_cpu = call->cpu;
	switch ((enum shim_part_op)call->op) {
	case SHIM_PART_GET:
		say("%ld", arg[0] ? part_get_shallow(sbq, arg[0]) : __sbitmap_queue_get(sbq));
		break;
	case SHIM_PART_GET_BATCH:
		bits = __sbitmap_queue_get_batch(sbq, arg[0], &offset);
		say("%lx", bits);
		say(" from %lu", bits ? offset : 0);
		break;
	case SHIM_PART_PUT:
		sbitmap_queue_clear(sbq, arg[0], arg[1]);
		break;
	case SHIM_PART_PUT_BATCH:
		sbitmap_queue_clear_batch(sbq, 0, (int *)call->bits, call->bit_count);
		break;
	case SHIM_PART_RESIZE:
		sbitmap_queue_resize(sbq, arg[0]);
		break;
	case SHIM_PART_SHARE:
		sbitmap_queue_recalculate_wake_batch(sbq, arg[0]);
		break;
	case SHIM_PART_WAKE_ALL:
		sbitmap_queue_wake_all(sbq);
		break;
	case SHIM_PART_WAIT:
		w->asleep = w->is_task;
		if (w->is_task)
			sbitmap_prepare_to_wait(sbq, &sbq->ws[arg[0]], &w->wait, TASK_UNINTERRUPTIBLE);
		else
			sbitmap_add_wait_queue(sbq, &sbq->ws[arg[0]], &w->wait);
		break;
	case SHIM_PART_RUNS:
		w->asleep = false;
		break;
	case SHIM_PART_LEAVE:
		w->asleep = false;
		if (w->is_task)
			sbitmap_finish_wait(sbq, &sbq->ws[arg[0]], &w->wait);
		else
			sbitmap_del_wait_queue(&w->wait);
		break;
	case SHIM_PART_ADD:
		rq->__sector = arg[1];
		elv_rb_add(&p->root, rq);
		break;
	case SHIM_PART_DEL:
		elv_rb_del(&p->root, rq);
		break;
	case SHIM_PART_FIND:
		rq = elv_rb_find(&p->root, arg[0]);
		say_request(rq ? &rq->rb_node : NULL);
		say_request(rb_first(&p->root));
		say_request(rb_last(&p->root));
		break;
	case SHIM_PART_BESIDE:
		say_request(rb_prev(&rq->rb_node));
		say_request(rb_next(&rq->rb_node));
		break;
	default:
		BUG();
	}
	if (sbq->ws)
		show_map(p);
	else
		show_below(p->root.rb_node);
}

struct shim_parts *shim_open_part(const struct shim_part *call)
{
	struct shim_parts *p;

	shim_cpus = call->cpu;
	p = part_open(call->arg);
	shim_begin_part(0);
	return p;
}
