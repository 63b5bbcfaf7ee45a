/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A queue of one scheduler: what the block layer does around the scheduler's calls, and the calls.
 *
 * All state of a queue is in its arena. Not here: what
 * libc does (host.c).
 */
#include "call.h"

#define SHIM_TIMERS 8
#define SHIM_LEVELS 3

struct shim_queue {
	struct request_queue q;
	struct gendisk disk;
	struct block_device part0;
	struct blk_mq_hw_ctx *hctx, **hctxs;
	struct blk_mq_tags *tags;
	struct blk_mq_ctx *ctxs;
	struct request *rqs;
	struct bio *bios;
	struct task_struct *tasks, kworker;
	/* One more than the highest of each that was ever set up. */
	unsigned int rqs_used, bios_used, tasks_used;
	struct shim_config config;
	void *timers[SHIM_TIMERS];
	unsigned int timer_count;
	/* One request of each level that the scheduler counts requests in, as it was inserted. */
	struct request counted[SHIM_LEVELS];
	struct shim_ends { u32 *at[SHIM_LEVELS]; unsigned int count; } ends;
	size_t rqs_bytes;
	struct shim_group *groups;
	unsigned int group_count;
	struct blk_independent_access_ranges ranges;
	/* What the clock showed at the end of the last call that read it. */
	u64 clock_ns;
	/* depth_updated was called, and the map that it looked at may have been the old one. */
	bool updated;
	/* queue/nr_requests as it was written last. */
	unsigned int nr_requests;
};

__thread struct shim_clock shim_clock;
__thread int shim_cpu, shim_cpus;
__thread struct task_struct *shim_current;
void *shim_slots(size_t bytes);
static __thread struct shim_queue *shim_queue;
static __thread struct shim_call *shim_this;
/* The request that the last one offered to it may have joined. */
static __thread struct request *shim_into, *shim_asked;
static struct elevator_type *shim_type;
static __thread u32 shim_random;

#include "cgroup.c"
#include "copy.c"
#include "sq.c"

int shim_register(struct elevator_type *type)
{
	shim_type = type;
	return 0;
}
void shim_unregister(struct elevator_type *type) { }

/* Hints where to search first: the same in each run, and zero for a queue, as the explorer has them. */
u32 get_random_u32(void) { return shim_random = shim_random ? shim_random * 1664525 + 1013904223 : 0; }

/*
 * The compiler reports each access of the scheduler's code (-fsanitize=thread, without its run-time library).
 */
static void shim_note(enum shim_touch kind, unsigned long number)
{
	struct shim_call *c = shim_this;
	unsigned int touch = kind << 24 | number;

	if (!c->touches || (c->touch_count && c->touches[c->touch_count - 1] == touch))
		return;
	if (c->touch_count < SHIM_TOUCHES_MAX)
		c->touches[c->touch_count++] = touch;
}

#define SHIM_WITHIN(field, member) \
	((field) - offsetof(struct request, member) < sizeof(((struct request *)0)->member))

static __always_inline void shim_accessed(void *address, bool write)
{
	struct shim_queue *s = shim_queue;
	struct shim_call *c = shim_this;
	unsigned long in_rqs, id, field, in_hash;

	/* A module or a queue is being set up. */
	if (!c)
		return;
	if (++c->accesses > SHIM_ACCESSES_MAX)
		shim_bug("shim", 0, "the call does not end: a million accesses to memory");
	if (!c->touches && c->op != SHIM_FINISH)
		return;
	in_rqs = (char *)address - (char *)s->rqs;
	if (in_rqs < s->rqs_bytes) {
		id = in_rqs / sizeof(struct request);
		field = in_rqs % sizeof(struct request);
		if (SHIM_WITHIN(field, rb_node) || SHIM_WITHIN(field, hash))
			shim_note(write ? SHIM_SORT : SHIM_VISIT, id);
		else if (write)
			shim_note(SHIM_WITHIN(field, queuelist) ? SHIM_LINK : SHIM_OWN, id);
		return;
	}
	in_hash = (char *)address - (char *)s->q.elevator->hash;
	if (in_hash < sizeof(s->q.elevator->hash))
		shim_note(write ? SHIM_BUCKET_WRITTEN : SHIM_BUCKET, in_hash / sizeof(struct hlist_head));
	else if (address == &s->q.last_merge)
		shim_note(write ? SHIM_LAST_MERGE_WRITTEN : SHIM_LAST_MERGE, 0);
	else if (write && (unsigned long)((char *)address - (char *)s) < s->config.bytes) {
		if (c->op == SHIM_FINISH && c->rq == SHIM_NONE)
			shim_counts_end(&s->ends, address);
		shim_note(SHIM_LINE, (unsigned long)((char *)address - (char *)s) / 64);
	}
}
static void shim_read(void *a) { shim_accessed(a, false); }
static void shim_wrote(void *a) { shim_accessed(a, true); }
#define SHIM_ACCESS(bytes) \
	void __tsan_read##bytes(void *a) { shim_read(a); } \
	void __tsan_write##bytes(void *a) { shim_wrote(a); } \
	void __tsan_unaligned_read##bytes(void *a) { shim_read(a); } \
	void __tsan_unaligned_write##bytes(void *a) { shim_wrote(a); }
SHIM_ACCESS(1)
SHIM_ACCESS(2)
SHIM_ACCESS(4)
SHIM_ACCESS(8)
SHIM_ACCESS(16)
void __tsan_read_range(void *a, size_t bytes) { shim_read(a); }
void __tsan_write_range(void *a, size_t bytes) { shim_wrote(a); }
void __tsan_func_entry(void *caller) { }
void __tsan_func_exit(void) { }
void __tsan_init(void) { }

/* What the block layer is asked for. A request that was absorbed is the caller's to free. */
void blk_mq_free_request(struct request *rq) { }

void blk_mq_free_requests(struct list_head *list)
{
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request, queuelist);

		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

bool blk_mq_sched_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	const __auto_type ops = SHIM_OPS(q->elevator->type);

	return !ops->allow_merge || ops->allow_merge(q, rq, bio);
}

bool blk_mq_sched_try_insert_merge(struct request_queue *q, struct request *rq, struct list_head *free)
{
	return rq_mergeable(rq) && shim_insert_merge(q, rq, free);
}

void blk_mq_run_hw_queues(struct request_queue *q, bool async) { shim_this->run = 1; }
void blk_mq_run_hw_queue(struct blk_mq_hw_ctx *hctx, bool async)
{
	if (!shim_this->run_hctx)
		shim_bug("shim", 0, "a run of a queue in a call that must not ask for one");
	BUG_ON(shim_this->run_count == SHIM_RUNS_MAX);
	shim_this->run_hctx[shim_this->run_count++] = hctx->queue_num;
}
struct blk_mq_ctx *blk_mq_get_ctx(struct request_queue *q) { return &q->queue_ctx[shim_cpu]; }
struct blk_mq_hw_ctx *shim_map_queue(void) { return shim_queue->hctxs[shim_this->io.hctx]; }
void blk_mq_sched_mark_restart_hctx(struct blk_mq_hw_ctx *hctx) { set_bit(2, &hctx->state); }
void blk_stat_enable_accounting(struct request_queue *q) { }
void blk_stat_disable_accounting(struct request_queue *q) { }
void wbt_disable_default(void *q) { }
void wbt_enable_default(void *q) { }
void shim_lock_taken(const char *file, int line, const char *name)
{
	if (!shim_this)
		return;
	shim_this->locked |= strcmp(name, "&q->queue_lock") != 0;
	shim_clock.ticks = shim_this->locked_ticks;
}
/* A part alone is called (parts.c). */
void shim_begin_part(u32 random)
{
	shim_this = NULL;
	shim_random = random;
}
void shim_pair(struct request *rq, struct request *next) { shim_into = rq; }
unsigned short shim_discard_segments(struct request *rq)
{
	shim_into = shim_asked;
	shim_asked = rq;
	return max_t(unsigned short, rq->nr_phys_segments, 1);
}
void shim_absorbed(struct request *rq)
{
	struct shim_call *c = shim_this;

	BUG_ON(!c->gone || c->gone_count == SHIM_GONE_MAX);
	c->gone[c->gone_count++] = (struct shim_gone){ rq->shim_id, shim_into->shim_id };
	shim_traced();
}
void shim_set_nomerge(struct request_queue *q, struct request *rq)
{
	struct shim_call *c = shim_this;

	rq->cmd_flags |= REQ_NOMERGE;
	if (rq == q->last_merge)
		q->last_merge = NULL;
	BUG_ON(!c->nomerge || c->nomerge_count == SHIM_GONE_MAX);
	c->nomerge[c->nomerge_count++] = rq->shim_id;
}
void shim_side(int side)
{
	shim_this->side = side;
	shim_traced();
}
void shim_joined(struct request *rq, struct bio *bio)
{
	shim_this->result = rq->shim_id;
	if (!shim_this->side)
		shim_this->side = ELEVATOR_DISCARD_MERGE;
}

/* Wait queues: those that are not exclusive stand before the others. */
void add_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *w)
{
	unsigned long flags;

	w->flags &= ~WQ_FLAG_EXCLUSIVE;
	spin_lock_irqsave(&q->lock, flags);
	list_add(&w->entry, &q->head);
	spin_unlock_irqrestore(&q->lock, flags);
}
void prepare_to_wait_exclusive(wait_queue_head_t *q, wait_queue_entry_t *w, int state)
{
	unsigned long flags;

	w->flags |= WQ_FLAG_EXCLUSIVE;
	spin_lock_irqsave(&q->lock, flags);
	if (list_empty(&w->entry))
		list_add_tail(&w->entry, &q->head);
	spin_unlock_irqrestore(&q->lock, flags);
}
void finish_wait(wait_queue_head_t *q, wait_queue_entry_t *w)
{
	unsigned long flags;

	if (list_empty_careful(&w->entry))
		return;
	spin_lock_irqsave(&q->lock, flags);
	list_del_init(&w->entry);
	spin_unlock_irqrestore(&q->lock, flags);
}
int wake_up_nr(wait_queue_head_t *q, int nr)
{
	struct list_head *at, *next;
	unsigned long flags;
	int left = nr;

	spin_lock_irqsave(&q->lock, flags);
	list_for_each_safe(at, next, &q->head) {
		wait_queue_entry_t *w = list_entry(at, wait_queue_entry_t, entry);
		/* Where it does not wake, its entry may be gone. */
		bool exclusive = w->flags & WQ_FLAG_EXCLUSIVE;
		int woken = w->func(w, TASK_NORMAL, 0, NULL);

		if (woken < 0 || (woken && exclusive && !--left))
			break;
	}
	spin_unlock_irqrestore(&q->lock, flags);
	return nr - left;
}

/* Timers. Those of ticks and of the clock begin alike. */
struct shim_timer { void (*function)(void *); u64 expires; bool armed; };

static void shim_expire(struct shim_queue *s, unsigned int number)
{
	struct shim_timer *timer;

	BUG_ON(number >= s->timer_count);
	timer = s->timers[number];
	timer->armed = false;
	timer->function(timer);
}

void shim_timer_setup(void *timer)
{
	BUG_ON(shim_queue->timer_count == SHIM_TIMERS);
	shim_queue->timers[shim_queue->timer_count++] = timer;
}

static void shim_ask(void *timer, unsigned int asked, u64 after_ns)
{
	unsigned int number = 0;

	while (number < shim_queue->timer_count && shim_queue->timers[number] != timer)
		number++;
	BUG_ON(number == shim_queue->timer_count);
	shim_this->timer = number;
	shim_this->timer_asked = asked;
	shim_this->timer_after_ns = after_ns;
}

int mod_timer(struct timer_list *t, unsigned long expires)
{
	t->expires = expires;
	t->armed = true;
	shim_ask(t, 1, jiffies_to_nsecs(expires - jiffies));
	return 0;
}
int timer_reduce(struct timer_list *t, unsigned long expires)
{
	if (t->armed && time_before_eq(t->expires, expires))
		return 1;
	return mod_timer(t, expires);
}
int timer_delete_sync(struct timer_list *t)
{
	shim_ask(t, 2, 0);
	t->armed = false;
	return 0;
}
void hrtimer_start(struct hrtimer *t, ktime_t after, enum hrtimer_mode mode)
{
	t->armed = true;
	t->expires_ns = shim_clock.ktime_ns + after;
	shim_ask(t, 1, after);
}
/* One that is not armed needs nothing of the caller. */
int hrtimer_try_to_cancel(struct hrtimer *t)
{
	int was = t->armed;

	if (was)
		shim_ask(t, 2, 0);
	t->armed = false;
	return was;
}

/* Trace events of kyber, as the scripts of blkmq print its probes. */
static void shim_event(const char *format, const char *a, const char *b, unsigned int c, unsigned int d,
		       unsigned int e, unsigned int f)
{
	struct shim_call *call = shim_this;

	if (!call->out_room)
		return;
	call->out_used += scnprintf(call->out + call->out_used, call->out_room - call->out_used, format, a, b, c,
				    d, e, f);
}
void shim_kyber_latency(const char *domain, const char *type, unsigned int percentile, unsigned int numerator,
			unsigned int denominator, unsigned int samples)
{
	shim_event("%s %s p%u %u/%u samples=%u\n", domain, type, percentile, numerator, denominator, samples);
}
void shim_kyber_adjust(const char *domain, unsigned int depth)
{
	shim_event("%s %s %u\n", "depth", domain, depth, 0, 0, 0);
}
void shim_kyber_throttled(const char *domain) { shim_event("%s %s\n", "throttled", domain, 0, 0, 0, 0); }

/* Files. */
int __blk_mq_debugfs_rq_show(struct seq_file *m, struct request *rq)
{
	seq_printf(m, "%u@%llu\n", rq->shim_id, rq->fifo_time);
	return 0;
}
int blk_mq_debugfs_rq_show(struct seq_file *m, void *v)
{
	return __blk_mq_debugfs_rq_show(m, list_entry(v, struct request, queuelist));
}
void *seq_list_next(void *v, struct list_head *head, loff_t *pos)
{
	struct list_head *next = ((struct list_head *)v)->next;

	++*pos;
	return next == head ? NULL : next;
}
void *seq_list_start(struct list_head *head, loff_t pos)
{
	return pos || list_empty(head) ? NULL : head->next;
}

static const struct blk_mq_debugfs_attr *shim_file(const struct blk_mq_debugfs_attr *attr, const char *name)
{
	for (; attr && attr->name && strcmp(attr->name, name); attr++)
		;
	return attr && attr->name ? attr : NULL;
}

static bool shim_is_rq(struct shim_queue *s, struct list_head *at)
{
	return (void *)at >= (void *)s->rqs && (void *)at < (void *)(s->rqs + s->config.requests);
}

/* Lists of requests that are linked to each other, wherever the head is: of schedulers that show none. */
static void shim_show_lists(struct shim_queue *s, struct seq_file *m)
{
	struct list_head *at;
	unsigned int i;

	for (i = 0; i < s->rqs_used; i++) {
		if (!s->rqs[i].q)
			continue;
		at = &s->rqs[i].queuelist;
		if (shim_is_rq(s, at->prev))
			continue;
		for (; shim_is_rq(s, at); at = at->next)
			seq_printf(m, " %u", list_entry(at, struct request, queuelist)->shim_id);
		seq_puts(m, "\n");
	}
}

/* The depth of asynchronous requests is an attribute of the queue since 7.0, of mq-deadline before. */
static bool shim_is_depth(const char *name)
{
	return LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0) && !strcmp(name, "async_depth");
}

static void shim_debugfs(struct shim_queue *s, struct shim_call *c)
{
	const struct elevator_type *type = s->q.elevator->type;
	const struct blk_mq_debugfs_attr *attr = shim_file(type->queue_debugfs_attrs, c->name);
	struct seq_file m = { &s->q, c->out, c->out_room, 0 };
	loff_t pos = 0;
	void *v;

	if (!attr) {
		attr = shim_file(type->hctx_debugfs_attrs, c->name);
		m.private = s->hctxs[c->io.hctx];
	}
	if (!strcmp(c->name, "last_merge")) {
		c->found = 1;
		if (s->q.last_merge)
			seq_printf(&m, "%u\n", s->q.last_merge->shim_id);
	} else if (!strcmp(c->name, "lists")) {
		shim_show_lists(s, &m);
	} else if (shim_is_depth(c->name)) {
		seq_printf(&m, "%u\n", s->q.async_depth);
	} else if (!attr) {
		return;
	} else if (attr->show) {
		attr->show(m.private, &m);
	} else {
		for (v = attr->seq_ops->start(&m, &pos); v; v = attr->seq_ops->next(&m, v, &pos))
			attr->seq_ops->show(&m, v);
		attr->seq_ops->stop(&m, v);
	}
	c->found = 1;
	c->out_used = m.used;
}

static const struct elv_fs_entry *shim_attr(struct shim_queue *s, const char *name)
{
	const struct elv_fs_entry *attr = s->q.elevator->type->elevator_attrs;

	for (; attr && attr->attr.name; attr++)
		if (!strcmp(attr->attr.name, name))
			return attr;
	return NULL;
}

/* Setting up. */
static void shim_bio(struct shim_queue *s, struct bio *bio, const struct shim_io *io)
{
	memset(bio, 0, sizeof(*bio));
	bio->bi_bdev = &s->part0;
	bio->bi_opf = io->opf;
	bio->bi_ioprio = io->ioprio;
	if (s->groups)
		bio->bi_blkg = &s->groups[io->group].blkg;
	bio->bi_iter.bi_sector = io->sector;
	bio->bi_iter.bi_size = io->bytes;
	bio->shim_segments = io->segments;
	bio->shim_vec.bv_len = io->bytes;
	bio->bi_io_vec = &bio->shim_vec;
	bio->bi_vcnt = 1;
	s->bios_used = max(s->bios_used, (unsigned int)(bio - s->bios) + 1);
}

static void shim_rq(struct shim_queue *s, struct request *rq, struct bio *bio, const struct shim_io *io)
{
	rq->cmd_flags = io->opf;
	rq->__sector = io->sector;
	rq->__data_len = io->bytes;
	rq->ioprio = io->ioprio;
	rq->nr_phys_segments = io->segments;
	rq->mq_hctx = s->hctxs[io->hctx];
	rq->mq_ctx = &s->ctxs[io->ctx];
	rq->mq_ctx->index_hw[0] = io->index;
	rq->start_time_ns = io->start_ns;
	rq->io_start_time_ns = io->issue_ns;
	if (io->flush_seq)
		rq->rq_flags |= RQF_FLUSH_SEQ;
	rq->bio = rq->biotail = bio;
	if (bio)
		shim_bio(s, bio, io);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
/* The elevator's queue is made before the scheduler's own data. */
static int shim_init_sched(struct request_queue *q, struct elevator_type *type)
{
	struct elevator_queue *eq = kzalloc(sizeof(*eq), GFP_KERNEL);

	eq->type = type;
	hash_init(eq->hash);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 19, 0)
	if (type->ops.alloc_sched_data)
		eq->elevator_data = type->ops.alloc_sched_data(q);
#endif
	return type->ops.init_sched(q, eq);
}
#else
#define shim_init_sched(q, type) SHIM_OPS(type)->init_sched(q, type)
#endif

struct shim_queue *shim_open(const struct shim_config *config)
{
	struct shim_queue *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct request_queue *q = &s->q;
	unsigned int i;

	shim_queue = s;
	shim_this = NULL;
	shim_begin_part(0);
	shim_clock = (struct shim_clock){ 0 };
	shim_cpus = config->cpus;
	s->config = *config;
	s->rqs_bytes = config->requests * sizeof(struct request);
	s->rqs = shim_slots(s->rqs_bytes);
	s->bios = shim_slots(config->bios * sizeof(struct bio));
	s->tasks = shim_slots(config->tasks * sizeof(struct task_struct));
	s->ctxs = kcalloc(config->cpus, sizeof(struct blk_mq_ctx), GFP_KERNEL);
	shim_current = shim_task(s, 0);
	q->disk = &s->disk;
	q->nr_requests = s->nr_requests = config->nr_requests;
	q->async_depth = config->nr_requests;
	q->nr_hw_queues = config->hctxs;
	s->hctx = kcalloc(config->hctxs, sizeof(*s->hctx), GFP_KERNEL);
	s->tags = kcalloc(config->hctxs, sizeof(*s->tags), GFP_KERNEL);
	s->hctxs = kcalloc(config->hctxs, sizeof(*s->hctxs), GFP_KERNEL);
	q->hctxs = s->hctxs;
	q->queue_ctx = s->ctxs;
	q->limits.logical_block_size = q->limits.physical_block_size = SECTOR_SIZE;
	q->limits.max_segment_size = 65536;
	q->limits.seg_boundary_mask = ULONG_MAX;
	INIT_LIST_HEAD(&q->icq_list);
	INIT_LIST_HEAD(&q->blkg_list);
	spin_lock_init(SHIM_QUEUE_LOCK(q));
	if (!config->rotational)
		blk_queue_flag_set(QUEUE_FLAG_NONROT, q);
	s->disk.queue = q;
	s->disk.disk_name = "sim";
	s->disk.part0 = &s->part0;
	s->part0.bd_disk = &s->disk;
	s->part0.bd_queue = q;
	for (i = 0; i < config->cpus; i++)
		s->ctxs[i].cpu = i;
	s->ranges.nr_ia_ranges = config->ranges;
	for (i = 0; i < config->ranges && i < SHIM_RANGES_MAX; i++) {
		s->ranges.ia_range[i].sector = config->range[i].first;
		s->ranges.ia_range[i].nr_sectors = config->range[i].sectors;
	}
	if (config->ranges)
		s->disk.ia_ranges = &s->ranges;
	if (shim_policy) {
		s->groups = kcalloc(config->groups, sizeof(struct shim_group), GFP_KERNEL);
		q->root_blkg = &shim_new_group(s, 0, "")->blkg;
	}
	for (i = 0; i < config->hctxs; i++) {
		s->hctxs[i] = &s->hctx[i];
		s->hctx[i].queue = q;
		s->hctx[i].queue_num = i;
		s->hctx[i].nr_ctx = config->nr_ctx[i];
		s->hctx[i].sched_tags = &s->tags[i];
		INIT_LIST_HEAD(&s->hctx[i].dispatch);
		sbitmap_queue_init_node(&s->tags[i].bitmap_tags, config->nr_requests, -1, false, GFP_KERNEL, 0);
	}
	BUG_ON(!shim_type);
	if (shim_init_sched(q, shim_type))
		return NULL;
	if (SHIM_OPS(shim_type)->init_hctx)
		for (i = 0; i < config->hctxs; i++)
			if (SHIM_OPS(shim_type)->init_hctx(s->hctxs[i], i))
				return NULL;
	return s;
}

static void shim_limit(struct shim_queue *s, const struct shim_limits *l)
{
	struct queue_limits *limits = &s->q.limits;

	limits->max_sectors = limits->max_hw_sectors = limits->max_write_zeroes_sectors = l->max_sectors;
	limits->max_segments = l->max_segments;
	limits->max_discard_segments = l->max_discard_segments;
	limits->max_discard_sectors = l->max_discard_sectors;
	limits->chunk_sectors = l->chunk_sectors;
	blk_queue_flag_clear(QUEUE_FLAG_NOMERGES, &s->q);
	blk_queue_flag_clear(QUEUE_FLAG_NOXMERGES, &s->q);
	if (l->nomerges)
		blk_queue_flag_set(l->nomerges == 2 ? QUEUE_FLAG_NOMERGES : QUEUE_FLAG_NOXMERGES, &s->q);
}

/* A request for a bio: what the block layer sets up before the scheduler sees it. */
static void shim_prepare(struct shim_queue *s, struct request *rq, unsigned int id, bool bare)
{
	for (; s->rqs_used <= id; s->rqs_used++)
		s->rqs[s->rqs_used].q = NULL;
	memset(rq, 0, sizeof(*rq));
	rq->q = &s->q;
	rq->shim_id = id;
	rq->part = &s->part0;
	rq->tag = rq->internal_tag = -1;
	rq->rq_flags = bare ? RQF_SCHED_TAGS : RQF_SCHED_TAGS | RQF_USE_SCHED;
	INIT_LIST_HEAD(&rq->queuelist);
	INIT_HLIST_NODE(&rq->hash);
	RB_CLEAR_NODE(&rq->rb_node);
	if (!bare && SHIM_OPS(s->q.elevator->type)->prepare_request)
		SHIM_OPS(s->q.elevator->type)->prepare_request(rq);
}

/* A class of priorities, that of a request without one being the usual one. */
static unsigned int shim_class(struct request *rq)
{
	unsigned int class = IOPRIO_PRIO_CLASS(rq->ioprio);

	return class == IOPRIO_CLASS_NONE ? IOPRIO_CLASS_BE : class;
}

/*
 * One plus the level in which the scheduler counts a request, which follows from what it keeps in it (6.12)
 * and from the class; 0 without.
 */
static unsigned int shim_level(struct shim_queue *s, struct request *rq)
{
	unsigned int level = 0;

	if (!rq->elv.priv[0])
		return 0;
	while (level < SHIM_LEVELS && s->counted[level].q
	       && (s->counted[level].elv.priv[0] != rq->elv.priv[0] || shim_class(&s->counted[level]) != shim_class(rq)))
		level++;
	if (level == SHIM_LEVELS)
		return 0;
	if (!s->counted[level].q)
		s->counted[level] = (struct request){ .q = rq->q, .cmd_flags = rq->cmd_flags, .rq_flags = rq->rq_flags,
						      .ioprio = rq->ioprio, .elv = rq->elv };
	return level + 1;
}

const char *shim_name(void) { return shim_type ? shim_type->elevator_name : NULL; }

static void shim_depth_updated(struct shim_queue *s)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	if (s->q.elevator->type->ops.depth_updated)
		s->q.elevator->type->ops.depth_updated(&s->q);
#else
	unsigned int i;

	for (i = 0; SHIM_OPS(s->q.elevator->type)->depth_updated && i < s->config.hctxs; i++)
		SHIM_OPS(s->q.elevator->type)->depth_updated(s->hctxs[i]);
#endif
}

/*
 * A write to queue/nr_requests. A scheduler before 6.18 is called while q->nr_requests is still the old number,
 * and again if its map turns out to have changed.
 */
static void shim_set_nr_requests(struct shim_queue *s, unsigned int nr)
{
	struct request_queue *q = &s->q;

	if (LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)) {
		q->nr_requests = s->nr_requests;
	} else {
		q->async_depth = max(q->async_depth * nr / s->nr_requests, 1u);
		q->nr_requests = nr;
	}
	shim_depth_updated(s);
	s->nr_requests = nr;
}

/*
 * The map of scheduler tags has words of this size. A kernel replaces a map that is too small before it calls
 * depth_updated; the caller knows the new one only later.
 */
static void shim_follow_map(struct shim_queue *s, unsigned int shift)
{
	unsigned int i;
	bool changed = false;

	for (i = 0; i < s->config.hctxs; i++) {
		changed |= s->tags[i].bitmap_tags.sb.shift != shift;
		s->tags[i].bitmap_tags.sb.shift = shift;
	}
	if (changed && s->updated)
		shim_depth_updated(s);
	s->updated = false;
}

/* Readings of the clock may be so far ahead of a call, ns: then the call begins at the last of them. */
#define SHIM_AHEAD_NS 100000

static void shim_set_clock(struct shim_queue *s, struct shim_call *c)
{
	c->ktime_ns += SHIM_BOOT_NS;
	/* The issue time of a request that was not issued stays 0. */
	if (c->io.issue_ns || !c->io.start_ns)
		c->io.issue_ns += SHIM_BOOT_NS;
	c->io.start_ns += SHIM_BOOT_NS;
	shim_clock.ticks = c->ticks;
	shim_clock.ktime_ns = c->ktime_ns;
	shim_clock.step_ns = c->clock == 2;
	if (c->clock == 2 && s->clock_ns - c->ktime_ns <= SHIM_AHEAD_NS)
		shim_clock.ktime_ns = s->clock_ns;
}

static void shim_attribute(struct shim_queue *s, struct shim_call *c, bool store)
{
	const struct elv_fs_entry *attr = shim_attr(s, c->name);
	unsigned long long depth;

	if (store && !strcmp(c->name, "async_depth"))
		s->updated = false;
	c->found = attr || shim_is_depth(c->name);
	if (attr && store) {
		c->result = attr->store(s->q.elevator, c->text, strlen(c->text));
	} else if (attr) {
		c->result = attr->show(s->q.elevator, c->out);
	} else if (c->found && store) {
		c->result = kstrtoull(c->text, 10, &depth) || !depth ? -EINVAL : 0;
		if (c->result)
			return;
		s->q.async_depth = min_t(u64, s->q.nr_requests, depth);
		shim_depth_updated(s);
	} else if (c->found) {
		c->result = sysfs_emit(c->out, "%u\n", s->q.async_depth);
	}
	c->out_used = store ? 0 : max((int)c->result, 0);
}

static void shim_attributes(struct shim_queue *s, struct shim_call *c)
{
	const struct elv_fs_entry *attr = s->q.elevator->type->elevator_attrs;

	c->found = 1;
	for (; attr && attr->attr.name; attr++)
		c->out_used += scnprintf(c->out + c->out_used, c->out_room - c->out_used, "%s ", attr->attr.name);
	if (shim_is_depth("async_depth"))
		c->out_used += scnprintf(c->out + c->out_used, c->out_room - c->out_used, "async_depth ");
}

/* A call. The caller catches what goes wrong in it. */
void shim_run(struct shim_queue *s, struct shim_call *c)
{
	const __auto_type ops = SHIM_OPS(s->q.elevator->type);
	struct request *rq = c->rq < s->config.requests ? &s->rqs[c->rq] : NULL;
	struct bio *bio = c->bio < s->config.bios ? &s->bios[c->bio] : NULL;
	struct blk_mq_hw_ctx *hctx = s->hctxs[c->io.hctx];
	struct blk_mq_alloc_data data = { 0 };
	unsigned int i;
	LIST_HEAD(list);

	shim_queue = s;
	shim_this = c;
	shim_set_clock(s, c);
	shim_cpu = c->cpu;
	shim_cpus = s->config.cpus;
	shim_current = shim_task(s, c->io.task);
	/* A request that did not come through an insertion. */
	if (rq && c->number && c->op != SHIM_INSERT) {
		shim_prepare(s, rq, c->rq, c->io.bare);
		shim_rq(s, rq, bio, &c->io);
	}
	switch ((enum shim_op)c->op) {
	case SHIM_MERGE_BIO:
		s->ctxs[shim_cpu].index_hw[0] = c->io.index;
		shim_bio(s, bio, &c->io);
		c->found = ops->bio_merge && ops->bio_merge(&s->q, bio, c->io.segments);
		break;
	case SHIM_INSERT:
		if (c->number)
			shim_prepare(s, rq, c->rq, c->io.bare);
		shim_rq(s, rq, bio, &c->io);
		list_add_tail(&rq->queuelist, &list);
		if (c->kworker)
			shim_current = shim_kworker(s, c->kworker);
		ops->insert_requests(hctx, &list, c->at_head);
		c->level = shim_level(s, rq);
		c->fifo_time = rq->fifo_time;
		break;
	case SHIM_DISPATCH:
		rq = ops->dispatch_request(hctx);
		c->found = rq != NULL;
		if (rq) {
			c->result = rq->shim_id;
			c->started = !!(rq->rq_flags & RQF_STARTED);
		}
		break;
	case SHIM_HAS_WORK:
		c->found = ops->has_work(hctx);
		break;
	case SHIM_TIMER:
		shim_expire(s, c->number);
		break;
	case SHIM_FINISH:
		if (!ops->finish_request)
			break;
		if (rq)
			ops->finish_request(rq);
		else
			for (; c->number; c->number--)
				ops->finish_request(&s->counted[c->level]);
		break;
	case SHIM_COMPLETED:
		rq->start_time_ns = c->io.start_ns;
		rq->io_start_time_ns = c->io.issue_ns;
		if (ops->completed_request)
			ops->completed_request(rq, c->ktime_ns);
		break;
	case SHIM_REQUEUE:
		if (ops->requeue_request)
			ops->requeue_request(rq);
		break;
	case SHIM_LIMIT_DEPTH:
		shim_follow_map(s, c->shift);
		s->q.nr_requests = c->number;
		data.q = &s->q;
		data.hctx = hctx;
		data.cmd_flags = c->io.opf;
		if (ops->limit_depth)
			ops->limit_depth(c->io.opf, &data);
		c->found = data.shallow_depth != 0;
		c->result = data.shallow_depth;
		break;
	case SHIM_DEPTH_UPDATED:
		shim_set_nr_requests(s, c->number);
		s->updated = true;
		break;
	case SHIM_STORE:
	case SHIM_SHOW:
		shim_attribute(s, c, c->op == SHIM_STORE);
		break;
	case SHIM_DEBUGFS:
		shim_debugfs(s, c);
		break;
	case SHIM_ROTATES:
		if (c->number)
			blk_queue_flag_clear(QUEUE_FLAG_NONROT, &s->q);
		else
			blk_queue_flag_set(QUEUE_FLAG_NONROT, &s->q);
		break;
	case SHIM_ATTRIBUTES:
		shim_attributes(s, c);
		break;
	case SHIM_EXIT:
		for (i = 0; ops->exit_hctx && i < s->config.hctxs; i++)
			ops->exit_hctx(s->hctxs[i], i);
		ops->exit_sched(s->q.elevator);
		break;
	case SHIM_EXIT_ICQ:
		shim_exit_task(s);
		break;
	case SHIM_GROUP:
		shim_add_group(s, c);
		break;
	case SHIM_TASK:
		shim_set_task(s, c);
		break;
	case SHIM_LIMIT:
		shim_limit(s, &c->limits);
		break;
	default:
		shim_run_single(s, c, rq);
	}
	if (c->clock)
		s->clock_ns = shim_clock.ktime_ns;
}
