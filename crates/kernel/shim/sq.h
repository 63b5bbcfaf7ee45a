/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What schedulers of the single-queue path (up to 4.20) use of the block layer besides block.h, which ends with
 * this. elevator.h and blk-merge.c are those of the tree. Not here: what the calls do (sq.c).
 */
#ifndef SHIM_SQ_H
#define SHIM_SQ_H

#define CONFIG_BLOCK 1
#define CONFIG_CFQ_GROUP_IOSCHED 1
#define CONFIG_DEFAULT_IOSCHED "noop"
#define SHIM_QUEUE_LOCK(q) (&(q)->shim_lock)
/* cfq computes times before the present one, without a sign. */
#define SHIM_BOOT_NS (1ull << 40)

/* Requests and bios. The model has one flag for metadata that goes first. */
#undef REQ_PRIO
#define REQ_PRIO REQ_META
#define REQ_OP_WRITE_SAME 7
#define RQF_SORTED (1u << 0)
#define RQF_SOFTBARRIER (1u << 3)
#define RQF_COPY_USER (1u << 11)
#define rq_end_sector(rq) (blk_rq_pos(rq) + blk_rq_sectors(rq))
#define list_entry_rq(at) list_entry(at, struct request, queuelist)
#define blk_account_rq(rq) (((rq)->rq_flags & RQF_STARTED) && !blk_rq_is_passthrough(rq))
#define blk_rq_cpu_valid(rq) false
#define ioprio_valid(prio) (IOPRIO_PRIO_CLASS(prio) != IOPRIO_CLASS_NONE)
/* The segments of a bio are the caller's, and no two of them become one. */
#define BIO_SEG_VALID 1
#define BIO_QUEUE_ENTERED 2
#define BIO_CLONED 3
enum { BLK_RW_ASYNC, BLK_RW_SYNC };
#define QUEUE_FLAG_NO_SG_MERGE 20
#undef part_stat_lock
#define part_stat_lock() 0
#undef bio_flagged
#define bio_flagged(b, f) ((f) == BIO_SEG_VALID)
#define bi_phys_segments shim_segments
#define bio_phys_segments(q, b) ((b)->shim_segments)
#define blk_queue_cluster(q) 0
#define bio_for_each_segment(bv, b, iter) bio_for_each_bvec(bv, b, iter)
#define bio_iovec(b) ((b)->shim_vec)
static inline unsigned int blk_rq_get_max_sectors(struct request *rq, sector_t from)
{
	struct queue_limits *l = &rq->q->limits;
	unsigned int most = blk_queue_get_max_sectors(rq->q, req_op(rq));

	if (!l->chunk_sectors || req_op(rq) == REQ_OP_DISCARD || req_op(rq) == REQ_OP_SECURE_ERASE)
		return most;
	return min(most, min(l->max_sectors, (unsigned int)(l->chunk_sectors - (from & (l->chunk_sectors - 1)))));
}
int ioprio_best(unsigned short a, unsigned short b);
int ll_back_merge_fn(struct request_queue *q, struct request *rq, struct bio *bio);
int ll_front_merge_fn(struct request_queue *q, struct request *rq, struct bio *bio);
struct request *attempt_back_merge(struct request_queue *q, struct request *rq);
struct request *attempt_front_merge(struct request_queue *q, struct request *rq);
void __blk_put_request(struct request_queue *q, struct request *rq);
void __blk_run_queue(struct request_queue *q);

/* Lists, clocks, work. */
#define list_for_each_prev(p, h) for ((p) = (h)->prev; (p) != (h); (p) = (p)->prev)
#define atomic_long_inc(a) atomic_inc(a)
#define prandom_u32() get_random_u32()
#define INIT_WORK(w, f) ((w)->func = (f))
#define cancel_work_sync(w) do { } while (0)
/* cfq has one, which runs the queue. */
#define kblockd_schedule_work(w) shim_schedule_run()
void shim_schedule_run(void);
#define hrtimer_active(t) ((t)->armed)
/* Number 0 of the model's timers is that of ticks, of older kernels. */
#undef hrtimer_init
#define hrtimer_init(t, clock, mode) do { \
	(t)->armed = false; shim_timer_setup(NULL); shim_timer_setup(t); } while (0)
#define simple_strtol(text, end, base) strtol(text, end, base)
long strtol(const char *text, char **end, int base);
unsigned long simple_strtoul(const char *text, char **end, unsigned int base);

/* Groups of the old hierarchy. Their counters are left out. */
#define SHIM_LEAST_WEIGHT 10u
#define CFTYPE_ONLY_ON_ROOT 2
#define io_cgrp_id 0
#define bio_blkcg(b) ((b)->bi_blkg->blkcg)
#define cpd_to_blkcg(p) ((p)->blkcg)
#define blkg_lookup(c, q) hlist_entry_safe((c)->blkg_list.first, struct blkcg_gq, blkcg_node)
struct blkcg *shim_root_blkcg(void);
#define blkcg_root (*shim_root_blkcg())
bool cgroup_is_descendant(struct cgroup *group, struct cgroup *ancestor);
enum { BLKG_RWSTAT_READ, BLKG_RWSTAT_WRITE };
u64 blkg_prfill_stat(struct seq_file *m, struct blkg_policy_data *pd, int offset);
u64 blkg_prfill_rwstat(struct seq_file *m, struct blkg_policy_data *pd, int offset);
int blkg_print_stat_bytes(struct seq_file *m, void *v);
int blkg_print_stat_ios(struct seq_file *m, void *v);
int blkg_print_stat_bytes_recursive(struct seq_file *m, void *v);
int blkg_print_stat_ios_recursive(struct seq_file *m, void *v);
struct blkg_rwstat blkg_rwstat_recursive_sum(struct blkcg_gq *g, struct blkcg_policy *policy, int offset);
#define blkg_stat_init(s, gfp) 0
#define blkg_stat_exit(s) do { } while (0)
#define blkg_stat_add(s, n) do { } while (0)
#define blkg_stat_reset(s) do { } while (0)
#define blkg_stat_add_aux(to, from) do { } while (0)
#define blkg_rwstat_init(s, gfp) 0
#define blkg_rwstat_exit(s) do { } while (0)
#define blkg_rwstat_add(s, op, n) do { } while (0)
#define blkg_rwstat_reset(s) do { } while (0)
#define blkg_rwstat_add_aux(to, from) do { } while (0)

#include <linux/elevator.h>
#define elv_deactivate_rq(q, rq) do { \
	if ((q)->elevator->type->ops.sq.elevator_deactivate_req_fn) \
		(q)->elevator->type->ops.sq.elevator_deactivate_req_fn(q, rq); } while (0)

/* Its calls in the words of blk-mq's. */
struct shim_sq_ops {
	int (*init_sched)(struct request_queue *q, struct elevator_type *type);
	void (*exit_sched)(struct elevator_queue *e);
	int (*init_hctx)(struct blk_mq_hw_ctx *hctx, unsigned int number);
	void (*exit_hctx)(struct blk_mq_hw_ctx *hctx, unsigned int number);
	bool (*allow_merge)(struct request_queue *q, struct request *rq, struct bio *bio);
	bool (*bio_merge)(struct request_queue *q, struct bio *bio, unsigned int segments);
	void (*limit_depth)(blk_opf_t opf, struct blk_mq_alloc_data *data);
	void (*depth_updated)(struct blk_mq_hw_ctx *hctx);
	void (*prepare_request)(struct request *rq);
	void (*insert_requests)(struct blk_mq_hw_ctx *hctx, struct list_head *list, bool at_head);
	struct request *(*dispatch_request)(struct blk_mq_hw_ctx *hctx);
	bool (*has_work)(struct blk_mq_hw_ctx *hctx);
	void (*completed_request)(struct request *rq, u64 now);
	void (*requeue_request)(struct request *rq);
	void (*finish_request)(struct request *rq);
	void (*exit_icq)(struct io_cq *icq);
};
extern const struct shim_sq_ops shim_sq_ops;
#define SHIM_OPS(type) (&shim_sq_ops)
#define shim_insert_merge(q, rq, free) elv_attempt_insert_merge(q, rq)

#endif
