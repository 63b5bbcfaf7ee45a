/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flush machine of one hctx by itself: requests of the test are inserted, and end. Commands and what they
 * print are those of src/differential/flush.rs.
 */
#include "call.h"

#define REQUESTS 16

struct shim_parts {
	struct request_queue q;
	struct gendisk disk;
	struct blk_mq_hw_ctx hctx;
	struct request rqs[REQUESTS];
	struct bio bios[REQUESTS];
	unsigned long ticks;
	bool kicked, bypassed;
};

__thread struct shim_clock shim_clock;
__thread int shim_cpu, shim_cpus;
static __thread struct shim_part *part;
static __thread struct shim_parts *at;
int vsnprintf(char *out, size_t room, const char *format, __builtin_va_list arguments);

static void say(const char *format, ...)
{
	__builtin_va_list arguments;

	__builtin_va_start(arguments, format);
	part->out_used += vsnprintf(part->out + part->out_used, part->out_room - part->out_used, format, arguments);
	__builtin_va_end(arguments);
	BUG_ON(part->out_used >= part->out_room);
}
static void say_request(struct request *rq)
{
	if (rq == at->hctx.fq->flush_rq)
		say(" F");
	else
		say(" %u", (unsigned int)(rq - at->rqs));
}

void shim_lock_taken(const char *file, int line, const char *name) { }
struct blk_mq_hw_ctx *shim_map_queue(void) { return &at->hctx; }
void blk_rq_init(struct request_queue *q, struct request *rq)
{
	memset(rq, 0, sizeof(*rq));
	INIT_LIST_HEAD(&rq->queuelist);
	rq->q = q;
	rq->tag = rq->internal_tag = BLK_MQ_NO_TAG;
}
void blk_mq_end_request(struct request *rq, blk_status_t error)
{
	BUG_ON(rq->rq_flags & RQF_FLUSH_SEQ || rq->end_io || rq->bio != rq->biotail);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	BUG_ON(rq->bio && rq->__sector != rq->bio->bi_iter.bi_sector);
#endif
	say("ends");
	say_request(rq);
	say(error ? " ioerr\n" : " ok\n");
	rq->shim_used = false;
}
void blk_mq_put_driver_tag(struct request *rq)
{
	BUG_ON(!at->q.elevator || rq->tag < 0);
	rq->tag = BLK_MQ_NO_TAG;
}
void blk_mq_kick_requeue_list(struct request_queue *q) { at->kicked = true; }
void blk_mq_add_to_requeue_list(struct request *rq, bool at_head, bool kick)
{
	if (at_head)
		list_add(&rq->queuelist, &rq->q->requeue_list);
	else
		list_add_tail(&rq->queuelist, &rq->q->requeue_list);
	at->kicked |= kick;
}
void blk_mq_request_bypass_insert(struct request *rq, bool at_head, bool run)
{
	BUG_ON(at_head || !run);
	at->bypassed = true;
}

/* It gets a driver tag, if a scheduler tag identifies it. */
static void issue(struct request *rq)
{
	rq->shim_issued = true;
	if (at->q.elevator)
		rq->tag = 0;
}
static void insert(struct request *rq, const char *words)
{
	bool goes_on = false;

	if (rq->shim_used) {
		say("?");
		return;
	}
	blk_rq_init(&at->q, rq);
	rq->mq_hctx = &at->hctx;
	*(at->q.elevator ? &rq->internal_tag : &rq->tag) = rq - at->rqs;
	rq->shim_used = true;
	rq->__data_len = simple_strtoull(words, NULL, 10) << SECTOR_SHIFT;
	rq->cmd_flags = REQ_OP_WRITE;
	if (rq->__data_len) {
		rq->bio = rq->biotail = &at->bios[rq - at->rqs];
		rq->bio->bi_iter.bi_sector = rq->__sector = 8 * (rq - at->rqs);
	}
	if (strchr(words, 'p'))
		rq->cmd_flags |= REQ_PREFLUSH;
	if (strchr(words, 'a'))
		rq->cmd_flags |= REQ_FUA;
#ifdef SHIM_FLUSH_COUNTS
	goes_on = !blk_insert_flush(rq);
#else
	blk_insert_flush(rq);
#endif
	say(goes_on ? "goes on" : at->bypassed ? "bypass" : "taken");
	say(rq->cmd_flags & REQ_SYNC ? " sync" : "");
	say(rq->cmd_flags & REQ_FUA ? " fua" : "");
	say(rq->cmd_flags & REQ_PREFLUSH ? " preflush\n" : "\n");
	rq->shim_issued = false;
	if (goes_on && rq->rq_flags & RQF_FLUSH_SEQ)
		issue(rq);
	/* What needs no flush is no more of the machine's. */
	if (at->bypassed || (goes_on && !(rq->rq_flags & RQF_FLUSH_SEQ)))
		rq->shim_used = false;
}

static void end(struct request *rq, blk_status_t error)
{
	if (!rq->shim_issued || !rq->end_io) {
		say("?");
		return;
	}
	rq->shim_issued = false;
	/* As blk_update_request() does, which goes on to the sector after the data. */
	rq->bio = NULL;
	rq->__sector += blk_rq_sectors(rq);
	BUG_ON(rq->end_io(rq, error) != RQ_END_IO_NONE);
}

static void requeue(struct list_head *list)
{
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request, queuelist);

		list_del_init(&rq->queuelist);
		issue(rq);
		say_request(rq);
	}
}

static void show_list(const char *name, struct list_head *list)
{
	struct request *rq;

	say("%s:", name);
	list_for_each_entry(rq, list, queuelist)
		say_request(rq);
	say("\n");
}
static void state(void)
{
	struct blk_flush_queue *fq = at->hctx.fq;
	unsigned long in_flight = 0;
	struct request *rq;
	unsigned int i;

#ifdef SHIM_FLUSH_COUNTS
	for (i = 0; i < 2; i++)
		show_list("pending", &fq->flush_queue[i]);
	in_flight = fq->flush_data_in_flight;
#else
	for (i = 0; i < 2; i++) {
		say("pending:");
		list_for_each_entry(rq, &fq->flush_queue[i], flush.list)
			say_request(rq);
		say("\n");
	}
	list_for_each_entry(rq, &fq->flush_data_in_flight, flush.list)
		in_flight++;
#endif
	say("index %u %u, since %lu, data %lu\n", fq->flush_pending_idx, fq->flush_running_idx, fq->flush_pending_since,
	    in_flight);
	show_list("requeue", &at->q.requeue_list);
	show_list("flush", &at->q.flush_list);
	say("steps:");
	for (i = 0; i < REQUESTS; i++)
		if (at->rqs[i].shim_used)
			say(at->rqs[i].tag < 0 ? " %u/%u" : " %u/%ut", i, at->rqs[i].flush.seq);
	if (fq->flush_pending_idx != fq->flush_running_idx)
		say(fq->flush_rq->tag < 0 ? " F of %d" : " F of %dt",
		    at->q.elevator ? fq->flush_rq->internal_tag : fq->flush_rq->tag);
	say("\n");
}

void shim_part(struct shim_parts *s, struct shim_part *call)
{
	char word[16] = "", which[16] = "", rest[32] = "";
	struct request *rq;

	part = call;
	at = s;
	s->kicked = s->bypassed = false;
	shim_clock = (struct shim_clock){ s->ticks, 0, 0 };
	sscanf(call->text, "%15s %15s %31[^\n]", word, which, rest);
	rq = !strcmp(which, "F") ? s->hctx.fq->flush_rq : &s->rqs[simple_strtoull(which, NULL, 10) % REQUESTS];
	if (!strcmp(word, "insert") && *which && *rest >= '0' && *rest <= '9' && rq != s->hctx.fq->flush_rq) {
		insert(rq, rest);
	} else if (!strcmp(word, "end") && *which) {
		end(rq, *rest ? BLK_STS_IOERR : BLK_STS_OK);
	} else if (!strcmp(word, "requeue")) {
		say("inserts");
		requeue(&s->q.requeue_list);
		requeue(&s->q.flush_list);
		say("\n");
	} else if (!strcmp(word, "wait") && *which) {
		s->ticks += simple_strtoull(which, NULL, 10);
	} else if (!strcmp(word, "state")) {
		state();
	} else {
		say("?");
	}
	if (s->kicked)
		say("kick\n");
}

/* flush WRITE_CACHE FUA SCHEDULER */
struct shim_parts *shim_open_part(const struct shim_part *call)
{
	struct shim_parts *s = kzalloc(sizeof(*s), GFP_KERNEL);
	unsigned int write_cache, fua, schedules;

	if (sscanf(call->text, "flush %u %u %u", &write_cache, &fua, &schedules) != 3)
		shim_bug("flush", 0, "expected: flush WRITE_CACHE FUA SCHEDULER");
	s->q.elevator = schedules ? s : NULL;
	s->q.limits.features = (write_cache ? BLK_FEAT_WRITE_CACHE : 0) | (fua ? BLK_FEAT_FUA : 0);
	s->q.queue_flags = (write_cache ? BIT(QUEUE_FLAG_WC) : 0) | (fua ? BIT(QUEUE_FLAG_FUA) : 0);
	INIT_LIST_HEAD(&s->q.requeue_list);
	INIT_LIST_HEAD(&s->q.flush_list);
	spin_lock_init(&s->q.requeue_lock);
	s->q.disk = &s->disk;
	s->hctx.fq = blk_alloc_flush_queue(NUMA_NO_NODE, 0, GFP_KERNEL);
	return s;
}
const char *shim_name(void) { return "flush"; }
int shim_module_init_0(void) { return 0; }
