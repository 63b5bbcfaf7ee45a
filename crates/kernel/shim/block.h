/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a block scheduler of the kernel uses of the block layer: requests, bios, a queue, its hardware
 * contexts, limits. Fields of several kernels stand beside each other; a file uses those of its own.
 *
 * blk.h, blk-mq.h and their like in a kernel tree are switched off here by their guards; elevator.h and a
 * scheduler's own header are the tree's. Not here: what the calls do (shim.c).
 */
#ifndef SHIM_BLOCK_H
#define SHIM_BLOCK_H

#include "linux.h"
#include "call.h"
/* Up to 4.20 a queue may have requests without blk-mq (sq.h). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 0, 0)
#define SHIM_SQ
#include <linux/rbtree.h>
#endif

#define BLK_INTERNAL_H
#define INT_BLK_MQ_H
#define INT_BLK_MQ_TAG_H
#define INT_BLK_MQ_DEBUGFS_H
#define BLK_MQ_SCHED_H
#define BLK_WBT_H
#define WB_THROTTLE_H
#define RQ_QOS_H
#define BLK_THROTTLE_H
#define _BLK_THROTTLE_H
#define _BLK_PM_H_
#define _BLK_CGROUP_PRIVATE_H

struct request_queue;
struct request;
struct bio;
struct elevator_queue;
struct elevator_type;
struct blk_mq_hw_ctx;
struct io_cq;
struct scatterlist;

/* Operations and flags of requests. */
typedef u32 blk_opf_t;
typedef u32 blk_insert_t;
typedef u8 blk_status_t;
typedef u32 req_flags_t;
enum req_op {
	REQ_OP_READ = 0, REQ_OP_WRITE = 1, REQ_OP_FLUSH = 2, REQ_OP_DISCARD = 3, REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7, REQ_OP_WRITE_ZEROES = 9, REQ_OP_ZONE_OPEN = 10, REQ_OP_ZONE_CLOSE = 11,
	REQ_OP_ZONE_FINISH = 12, REQ_OP_ZONE_RESET = 13, REQ_OP_ZONE_RESET_ALL = 15,
	REQ_OP_DRV_IN = 34, REQ_OP_DRV_OUT = 35, REQ_OP_LAST = 36,
};
#define REQ_OP_BITS 8
#define REQ_OP_MASK ((1u << REQ_OP_BITS) - 1)
#define SHIM_REQ(n) (1u << (REQ_OP_BITS + (n)))
#define REQ_FAILFAST_DEV SHIM_REQ(0)
#define REQ_FAILFAST_TRANSPORT SHIM_REQ(1)
#define REQ_FAILFAST_DRIVER SHIM_REQ(2)
#define REQ_FAILFAST_MASK (REQ_FAILFAST_DEV | REQ_FAILFAST_TRANSPORT | REQ_FAILFAST_DRIVER)
#define REQ_SYNC SHIM_REQ(3)
#define REQ_META SHIM_REQ(4)
#define REQ_PRIO SHIM_REQ(5)
#define REQ_NOMERGE SHIM_REQ(6)
#define REQ_IDLE SHIM_REQ(7)
#define REQ_INTEGRITY SHIM_REQ(8)
#define REQ_FUA SHIM_REQ(9)
#define REQ_PREFLUSH SHIM_REQ(10)
#define REQ_RAHEAD SHIM_REQ(11)
#define REQ_BACKGROUND SHIM_REQ(12)
#define REQ_NOWAIT SHIM_REQ(13)
#define REQ_POLLED SHIM_REQ(14)
#define REQ_NOUNMAP SHIM_REQ(17)
#define REQ_ATOMIC SHIM_REQ(18)
#define REQ_NOMERGE_FLAGS (REQ_NOMERGE | REQ_PREFLUSH | REQ_FUA)
#define READ 0
#define WRITE 1
#define op_is_write(op) (!!((op) & 1))
#define op_is_flush(op) (!!((op) & (REQ_FUA | REQ_PREFLUSH)))
static inline bool op_is_sync(blk_opf_t op)
{
	return (op & REQ_OP_MASK) == REQ_OP_READ || (op & (REQ_SYNC | REQ_FUA | REQ_PREFLUSH));
}
#define op_is_discard(op) (((op) & REQ_OP_MASK) == REQ_OP_DISCARD)
#define op_stat_group(op) (op_is_discard(op) ? 2 : op_is_write(op))
enum { STAT_READ, STAT_WRITE, STAT_DISCARD, STAT_FLUSH, NR_STAT_GROUPS };
#define RQF_STARTED (1u << 1)
#define RQF_FLUSH_SEQ (1u << 4)
#define RQF_MIXED_MERGE (1u << 5)
#define RQF_DONTPREP (1u << 7)
#define RQF_IO_STAT (1u << 13)
#define RQF_HASHED (1u << 16)
#define RQF_STATS (1u << 17)
#define RQF_SPECIAL_PAYLOAD (1u << 18)
#define RQF_ZONE_WRITE_PLUGGING (1u << 20)
#define RQF_SCHED_TAGS (1u << 8)
#define RQF_USE_SCHED (1u << 9)
#define RQF_ELVPRIV RQF_USE_SCHED
#define RQF_ELV RQF_SCHED_TAGS
#define RQF_NOMERGE_FLAGS (RQF_STARTED | RQF_FLUSH_SEQ | RQF_SPECIAL_PAYLOAD)
#define BLK_MQ_INSERT_AT_HEAD 1u
#define SECTOR_SHIFT 9
#define SECTOR_SIZE 512
#define BIO_MAX_SIZE (UINT_MAX & ~(SECTOR_SIZE - 1))
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096UL
#define PAGE_MASK (~(PAGE_SIZE - 1))

/* Priorities. */
enum { IOPRIO_CLASS_NONE, IOPRIO_CLASS_RT, IOPRIO_CLASS_BE, IOPRIO_CLASS_IDLE };
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_NR_LEVELS 8
#define IOPRIO_BE_NR IOPRIO_NR_LEVELS
#define IOPRIO_BE_NORM 4
#define IOPRIO_NORM 4
#define IOPRIO_PRIO_CLASS(p) (((p) >> IOPRIO_CLASS_SHIFT) & 7)
#define IOPRIO_PRIO_DATA(p) ((p) & ((1 << IOPRIO_CLASS_SHIFT) - 1))
#define IOPRIO_PRIO_LEVEL(p) ((p) & 7)
#define IOPRIO_PRIO_VALUE(c, d) (((c) << IOPRIO_CLASS_SHIFT) | (d))
#define IOPRIO_DEFAULT IOPRIO_PRIO_VALUE(IOPRIO_CLASS_NONE, 0)

/* Data of bios: the caller gives lengths and numbers of segments, never pages. */
struct page { int unused; };
struct bio_vec { struct page *bv_page; unsigned int bv_len, bv_offset; };
struct bvec_iter { sector_t bi_sector; unsigned int bi_size, bi_idx, bi_bvec_done; };
struct bvec_iter_all { int unused; };
struct bio_set { int unused; };
struct blkcg_gq;
struct hd_struct;
struct block_device { struct gendisk *bd_disk; struct request_queue *bd_queue; };
struct bio_issue { u64 value; };
struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	unsigned short bi_flags, bi_ioprio, bi_write_hint, bi_write_stream, bi_bvec_gap_bit;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
	struct cgroup_subsys_state *bi_css;
	struct bio_issue bi_issue;
	unsigned short bi_vcnt;
	struct bio_vec *bi_io_vec;
	void *bi_private;
	struct gendisk *bi_disk;
	unsigned int bi_seg_front_size, bi_seg_back_size;
	unsigned short shim_segments;
	struct bio_vec shim_vec;
};
#define bio_op(b) ((enum req_op)((b)->bi_opf & REQ_OP_MASK))
#define bio_sectors(b) ((b)->bi_iter.bi_size >> SECTOR_SHIFT)
#define bio_end_sector(b) ((b)->bi_iter.bi_sector + bio_sectors(b))
#define bio_data_dir(b) (op_is_write(bio_op(b)) ? WRITE : READ)
#define bio_prio(b) ((b)->bi_ioprio)
#define bio_has_data(b) ((b)->bi_iter.bi_size && bio_op(b) != REQ_OP_DISCARD && bio_op(b) != REQ_OP_WRITE_ZEROES)
#define bio_mergeable(b) (!((b)->bi_opf & REQ_NOMERGE_FLAGS))
#define bio_integrity(b) NULL
#define bio_flagged(b, f) 0
#define bio_list_get(b) NULL
#define for_each_bio(b) for (; (b); (b) = (b)->bi_next)
#define mp_bvec_iter_bvec(vec, iter) (*(vec))
#define bio_advance_iter(b, iter, bytes) do { (iter)->bi_idx = 1; (iter)->bi_bvec_done = 0; } while (0)
#define bio_for_each_bvec(bv, b, iter) \
	for ((iter) = (b)->bi_iter, (bv) = (b)->shim_vec; (iter).bi_idx < 1; (iter).bi_idx++)
struct req_iterator { struct bio *bio; struct bvec_iter iter; };
#define rq_for_each_bvec(bv, rq, i) \
	for ((i).bio = (rq)->bio; (i).bio; (i).bio = (i).bio->bi_next) bio_for_each_bvec(bv, (i).bio, (i).iter)
#define bvec_phys(bv) ((phys_addr_t)(bv)->bv_offset)
struct scatterlist { unsigned int length; };

struct queue_limits {
	unsigned int max_sectors, max_hw_sectors, max_segment_size, chunk_sectors, max_discard_sectors;
	unsigned int max_write_zeroes_sectors, max_write_same_sectors, max_zone_append_sectors, max_secure_erase_sectors;
	unsigned int physical_block_size, logical_block_size, discard_granularity, discard_alignment;
	unsigned int atomic_write_max_sectors, atomic_write_boundary_sectors, zone_write_granularity;
	unsigned int dma_alignment, min_segment_size, max_fast_segment_size;
	unsigned short max_segments, max_discard_segments, max_integrity_segments;
	unsigned long seg_boundary_mask, virt_boundary_mask;
};

struct backing_dev_info { int unused; };
struct gendisk {
	struct request_queue *queue; const char *disk_name; struct bio_set bio_split; struct kobject *slave_dir;
	struct blk_independent_access_ranges *ia_ranges; int node_id; struct block_device *part0; struct backing_dev_info *bdi; struct kobject queue_kobj;
};
struct blk_mq_ctx { unsigned int cpu; unsigned short index_hw[3]; struct blk_mq_hw_ctx *hctxs[3]; struct request_queue *queue; };
struct blk_mq_tags;

struct blk_mq_tag_set {
	unsigned int nr_hw_queues, queue_depth, flags;
	struct mutex update_nr_hwq_lock;
};
struct blk_mq_hw_ctx {
	struct request_queue *queue;
	void *sched_data;
	struct blk_mq_tags *tags, *sched_tags;
	struct blk_mq_ctx **ctxs;
	struct list_head dispatch;
	spinlock_t lock;
	unsigned long state;
	unsigned int queue_num, nr_ctx, flags, type;
	int numa_node;
};
struct blk_mq_alloc_data {
	struct request_queue *q;
	unsigned int flags, shallow_depth;
	blk_opf_t cmd_flags;
	struct blk_mq_ctx *ctx;
	struct blk_mq_hw_ctx *hctx;
};

struct elevator_data;
struct request_queue {
	struct request *last_merge;
	struct elevator_queue *elevator;
	struct blk_mq_ctx *queue_ctx;
	struct blk_mq_hw_ctx **hctxs;
	unsigned long queue_flags;
	struct gendisk *disk;
	struct queue_limits limits;
	unsigned long nr_requests, nr_hw_queues;
	unsigned int async_depth;
	struct blk_mq_tag_set *tag_set;
	struct blk_mq_tags *sched_shared_tags;
#ifdef SHIM_SQ
	/* Requests that are on their way to the driver; those that the scheduler has; the end of the last one. */
	struct list_head queue_head;
	unsigned int nr_sorted, in_flight[2], dma_pad_mask, dma_drain_size;
	sector_t end_sector;
	struct request *boundary_rq;
	void *mq_ops, *request_fn, *dma_drain_buffer;
	int (*dma_drain_needed)(struct request *);
	struct bio_set bio_split;
	spinlock_t shim_lock, *queue_lock;
#else
	spinlock_t queue_lock;
#endif
	struct mutex sysfs_lock, elevator_lock, blkcg_mutex;
	struct list_head icq_list;
	struct blkcg_gq *root_blkg;
	struct list_head blkg_list;
	int node, id, mq_freeze_depth;
	unsigned int required_elevator_features;
	struct kobject kobj, *mq_kobj;
	void *queuedata;
	struct dentry *debugfs_dir, *sched_debugfs_dir, *rqos_debugfs_dir;
	struct blk_queue_stats *stats;
	struct list_head unused_hctx_list;
	struct blk_trace *blk_trace;
};
enum {
	QUEUE_FLAG_NOMERGES, QUEUE_FLAG_NOXMERGES, QUEUE_FLAG_NONROT, QUEUE_FLAG_SQ_SCHED, QUEUE_FLAG_IO_STAT,
	QUEUE_FLAG_ADD_RANDOM, QUEUE_FLAG_SAME_COMP, QUEUE_FLAG_DYING, QUEUE_FLAG_REGISTERED, QUEUE_FLAG_STATS,
	QUEUE_FLAG_DISABLE_WBT_DEF, QUEUE_FLAG_NO_ELV_SWITCH,
};
#define blk_queue_flag_set(f, q) set_bit(f, &(q)->queue_flags)
#define blk_queue_flag_clear(f, q) clear_bit(f, &(q)->queue_flags)
#define blk_queue_nomerges(q) test_bit(QUEUE_FLAG_NOMERGES, &(q)->queue_flags)
#define blk_queue_noxmerges(q) test_bit(QUEUE_FLAG_NOXMERGES, &(q)->queue_flags)
#define blk_queue_nonrot(q) test_bit(QUEUE_FLAG_NONROT, &(q)->queue_flags)
#define blk_queue_rot(q) (!blk_queue_nonrot(q))
#define blk_queue_is_zoned(q) 0
#define blk_queue_dying(q) 0
#define blk_queue_registered(q) 1
#define queue_max_discard_segments(q) ((q)->limits.max_discard_segments)
#define queue_max_segments(q) ((q)->limits.max_segments)
#define queue_max_segment_size(q) ((q)->limits.max_segment_size)
#define queue_virt_boundary(q) ((q)->limits.virt_boundary_mask)
#define queue_is_mq(q) 1
#define queue_for_each_hw_ctx(q, h, i) for ((i) = 0; (i) < (q)->nr_hw_queues && ((h) = (q)->hctxs[i], 1); (i)++)
#define hctx_for_each_ctx(h, c, i) for ((i) = 0; (i) < (h)->nr_ctx && ((c) = (h)->ctxs[i], 1); (i)++)
#define blk_mq_is_sync_read(op) (((op) & REQ_OP_MASK) == REQ_OP_READ)
#define bdev_get_queue(b) ((b)->bd_queue)

struct request {
	struct request_queue *q;
	struct blk_mq_ctx *mq_ctx;
	struct blk_mq_hw_ctx *mq_hctx;
	blk_opf_t cmd_flags;
	req_flags_t rq_flags;
	int tag, internal_tag;
	unsigned int timeout, __data_len;
	sector_t __sector;
	struct bio *bio, *biotail;
	union { struct list_head queuelist; struct request *rq_next; };
	struct block_device *part;
	struct gendisk *rq_disk;
	void *special;
	int cpu;
	unsigned int extra_len;
	u64 start_time_ns, io_start_time_ns, alloc_time_ns;
	unsigned short stats_sectors, wbt_flags, nr_phys_segments, nr_integrity_segments, phys_gap_bit;
	unsigned short ioprio, write_hint;
	unsigned long deadline;
	union { struct hlist_node hash; };
#ifdef SHIM_SQ
	struct rb_node rb_node;
#else
	struct rb_node { unsigned long __rb_parent_color; struct rb_node *rb_right, *rb_left; } rb_node
		__attribute__((aligned(sizeof(long))));
#endif
	struct bio_vec special_vec;
	struct { struct io_cq *icq; void *priv[2]; } elv;
	struct { unsigned int seq; void *saved_end_io; } flush;
	u64 fifo_time;
	u32 shim_id;
};
#ifndef SHIM_SQ
/* The tree's linux/rbtree_types.h is not read: struct rb_node stands above. */
#define _LINUX_RBTREE_TYPES_H
struct rb_root { struct rb_node *rb_node; };
struct rb_root_cached { struct rb_root rb_root; struct rb_node *rb_leftmost; };
struct rb_node_linked { struct rb_node node; struct rb_node_linked *prev, *next; };
struct rb_root_linked { struct rb_root rb_root; struct rb_node_linked *rb_leftmost; };
#define RB_ROOT (struct rb_root) { NULL }
#define RB_ROOT_CACHED (struct rb_root_cached) { { NULL }, NULL }
#endif
struct rcu_head { void (*func)(struct rcu_head *); };

#define req_op(rq) ((enum req_op)((rq)->cmd_flags & REQ_OP_MASK))
#define rq_data_dir(rq) (op_is_write(req_op(rq)) ? WRITE : READ)
#define rq_is_sync(rq) op_is_sync((rq)->cmd_flags)
static inline sector_t blk_rq_pos(const struct request *rq) { return rq->__sector; }
#define blk_rq_bytes(rq) ((rq)->__data_len)
#define blk_rq_sectors(rq) (blk_rq_bytes(rq) >> SECTOR_SHIFT)
#define blk_rq_nr_phys_segments(rq) ((rq)->nr_phys_segments)
#define blk_rq_is_passthrough(rq) (req_op(rq) == REQ_OP_DRV_IN || req_op(rq) == REQ_OP_DRV_OUT)
#define req_get_ioprio(rq) ((rq)->ioprio)
#define blk_do_io_stat(rq) 0
/* Asked of a discard, then of the one that it absorbs. */
unsigned short shim_discard_segments(struct request *rq);
#define blk_rq_nr_discard_segments(rq) shim_discard_segments(rq)
static inline bool rq_mergeable(struct request *rq)
{
	return !blk_rq_is_passthrough(rq) && req_op(rq) != REQ_OP_FLUSH && req_op(rq) != REQ_OP_WRITE_ZEROES
		&& req_op(rq) != REQ_OP_ZONE_APPEND && !(rq->cmd_flags & REQ_NOMERGE_FLAGS)
		&& !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}
#ifndef SHIM_SQ
static inline bool blk_discard_mergable(struct request *rq)
{
	return req_op(rq) == REQ_OP_DISCARD && queue_max_discard_segments(rq->q) > 1;
}
bool blk_attempt_req_merge(struct request_queue *q, struct request *rq, struct request *next);
#endif
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 4, 0)
static inline unsigned int blk_rq_get_max_segments(struct request *rq)
{
	return req_op(rq) == REQ_OP_DISCARD ? queue_max_discard_segments(rq->q) : queue_max_segments(rq->q);
}
#endif
static inline unsigned int shim_max_sectors(struct request_queue *q, enum req_op op)
{
	if (op == REQ_OP_DISCARD || op == REQ_OP_SECURE_ERASE)
		return min(q->limits.max_discard_sectors, UINT_MAX >> SECTOR_SHIFT);
	return op == REQ_OP_WRITE_ZEROES ? q->limits.max_write_zeroes_sectors : q->limits.max_sectors;
}
/* Of a request since 6.9, of a queue and an operation before. */
#define SHIM_MAX_SECTORS1(rq) shim_max_sectors((rq)->q, req_op(rq))
#define SHIM_MAX_SECTORS2(q, op) shim_max_sectors(q, op)
#define SHIM_CHOOSE(a, b, chosen, ...) chosen
#define blk_queue_get_max_sectors(...) \
	SHIM_CHOOSE(__VA_ARGS__, SHIM_MAX_SECTORS2, SHIM_MAX_SECTORS1)(__VA_ARGS__)
#define blk_boundary_sectors_left(offset, chunk) ({ sector_t shim_o = (offset); u32 shim_c = (chunk); \
	(u32)(shim_c - shim_o % shim_c); })
#define blk_chunk_sectors_left(offset, chunk) blk_boundary_sectors_left(offset, chunk)
#define req_set_nomerge(queue, req) shim_set_nomerge(queue, req)
void shim_set_nomerge(struct request_queue *q, struct request *rq);
#define ELV_ON_HASH(rq) ((rq)->rq_flags & RQF_HASHED)
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
enum bio_merge_status { BIO_MERGE_OK, BIO_MERGE_NONE, BIO_MERGE_FAILED };
#endif

/* Left out, as the model leaves it out: integrity, encryption, zones, atomic writes, segment gaps, rq-qos. */
#define blk_integrity_rq(rq) 0
#define blk_integrity_merge_bio(q, rq, bio) true
/* The last question before a request absorbs NEXT. */
#define blk_integrity_merge_rq(q, rq, next) (shim_pair(rq, next), true)
void shim_pair(struct request *rq, struct request *next);
#define integrity_req_gap_back_merge(rq, bio) false
#define integrity_req_gap_front_merge(rq, bio) false
#define blk_rq_count_integrity_sg(q, bio) 0
struct bio_crypt_ctx { struct { struct { unsigned int data_unit_size; } crypto_cfg; } *bc_key; };
#define bio_crypt_ctx(bio) ((struct bio_crypt_ctx *)NULL)
#define bio_crypt_ctx_back_mergeable(rq, bio) true
#define bio_crypt_ctx_front_mergeable(rq, bio) true
#define bio_crypt_ctx_merge_rq(rq, next) true
#define bio_crypt_rq_ctx_compatible(rq, bio) true
#define bio_crypt_free_ctx(bio) do { } while (0)
#define bio_crypt_do_front_merge(rq, bio) do { } while (0)
#define blk_crypto_rq_put_keyslot(rq) do { } while (0)
#define blk_zone_write_plug_bio_merged(bio) do { } while (0)
#define bio_zone_write_plugging(bio) 0
#define blk_cgroup_mergeable(rq, b) \
	((rq)->bio->bi_blkg == (b)->bi_blkg && !(((rq)->bio->bi_opf ^ (b)->bi_opf) & REQ_META))
#define blkcg_bio_issue_init(bio) do { } while (0)
#define biovec_phys_mergeable(q, a, b) true
#define __bvec_gap_to_prev(lim, a, offset) false
#define bvec_gap_to_prev(lim, a, offset) false
#define bio_clear_polled(bio) do { } while (0)
/* Called for each bio that joins a request. */
#define rq_qos_merge(q, rq, bio) shim_joined(rq, bio)
void shim_joined(struct request *rq, struct bio *bio);
#define part_stat_lock() do { } while (0)
#define part_stat_unlock() do { } while (0)
#define part_stat_inc(part, field) do { } while (0)
#define part_stat_local_dec(part, field) do { } while (0)
#define sg_unmark_end(sg) do { } while (0)
#define sg_mark_end(sg) do { } while (0)
#define sg_next(sg) (sg)
#define sg_set_page(sg, page, len, offset) ((sg)->length = (len))
#define trace_block_split(...) do { } while (0)
#define trace_block_rq_merge(rq) shim_absorbed(rq)
#define trace_block_rq_insert(...) shim_traced()
void shim_traced(void);
void shim_absorbed(struct request *rq);
#define trace_block_bio_backmerge(bio) shim_side(2)
#define trace_block_bio_frontmerge(bio) shim_side(1)
void shim_side(int side);
struct bio *bio_split(struct bio *bio, int sectors, gfp_t gfp, struct bio_set *set);

/* Tasks: one runs; the caller says which. */
struct blk_plug { struct { struct request *head, *tail; } mq_list; bool multiple_queues; };
struct io_context { atomic_long_t refcount; atomic_t active_ref; unsigned short ioprio; };
struct io_cq { struct request_queue *q; struct io_context *ioc; struct list_head q_node; unsigned int flags; };
struct task_struct {
	pid_t pid; char comm[16]; struct io_context *io_context; struct blk_plug *plug; u16 ioprio, nice;
	/* Its I/O context, and what that has of the device. */
	struct io_context shim_ioc; struct io_cq *shim_icq;
};
extern __thread struct task_struct *shim_current;
#define current shim_current
#define rq_list_empty(l) 1
#define rq_list_peek(l) NULL
#define rq_list_for_each(l, rq) for ((rq) = NULL; (rq); )
#define rq_list_for_each_safe(l, rq, n) for ((rq) = NULL; (rq); )

struct blk_mq_debugfs_attr {
	const char *name;
	umode_t mode;
	int (*show)(void *, struct seq_file *);
	ssize_t (*write)(void *, const char *, size_t, loff_t *);
	const struct seq_operations *seq_ops;
};
int blk_mq_debugfs_rq_show(struct seq_file *m, void *v);
int __blk_mq_debugfs_rq_show(struct seq_file *m, struct request *rq);

bool blk_mq_sched_try_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs, struct request **gone);
bool blk_mq_sched_try_insert_merge(struct request_queue *q, struct request *rq, struct list_head *free);
bool blk_mq_sched_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio);
bool blk_rq_merge_ok(struct request *rq, struct bio *bio);
enum elv_merge blk_try_merge(struct request *rq, struct bio *bio);
void blk_mq_free_request(struct request *rq);
void blk_mq_free_requests(struct list_head *list);
void blk_mq_run_hw_queues(struct request_queue *q, bool async);
void blk_mq_run_hw_queue(struct blk_mq_hw_ctx *hctx, bool async);
void blk_mq_delay_run_hw_queues(struct request_queue *q, unsigned long msecs);
void blk_mq_sched_mark_restart_hctx(struct blk_mq_hw_ctx *hctx);
struct blk_mq_ctx *blk_mq_get_ctx(struct request_queue *q);
/* Without the queue since 6.14. */
#define blk_mq_map_queue(...) shim_map_queue()
struct blk_mq_hw_ctx *shim_map_queue(void);
bool blk_bio_list_merge(struct request_queue *q, struct list_head *list, struct bio *bio, unsigned int nr_segs);
#define disk_devt(disk) 0
#define trace_kyber_latency(dev, domain, type, percentile, numerator, denominator, samples) \
	shim_kyber_latency(domain, type, percentile, numerator, denominator, samples)
#define trace_kyber_adjust(dev, domain, depth) shim_kyber_adjust(domain, depth)
#define trace_kyber_throttled(dev, domain) shim_kyber_throttled(domain)
void shim_kyber_latency(const char *domain, const char *type, unsigned int percentile, unsigned int numerator,
			unsigned int denominator, unsigned int samples);
void shim_kyber_adjust(const char *domain, unsigned int depth);
void shim_kyber_throttled(const char *domain);
void blk_stat_enable_accounting(struct request_queue *q);
void blk_stat_disable_accounting(struct request_queue *q);
void wbt_disable_default(void *q_or_disk);
void wbt_enable_default(void *q_or_disk);

#define CONFIG_BLK_DEBUG_FS 1
#define ELEVATOR_F_ZBD_SEQ_WRITE 1
#define BLK_MQ_F_NO_SCHED 1
#define BLK_MQ_F_NO_SCHED_BY_DEFAULT 2
#define blk_mq_is_shared_tags(flags) 0
#define blk_rq_is_seq_zoned_write(rq) 0
#define blk_req_zone_write_lock(rq) do { } while (0)
#define blk_req_zone_write_unlock(rq) do { } while (0)
#define blk_req_can_dispatch_to_zone(rq) true
#define BLK_STS_OK 0
#define BLK_STS_IOERR 10
#define BLK_STS_AGAIN 12

#ifdef SHIM_SQ
struct blkg_stat { u64 unused; };
struct blkg_rwstat { atomic64_t aux_cnt[4]; };
#endif
#include "cgroup.h"
#define CONFIG_BFQ_GROUP_IOSCHED 1

/* The tree's own. */
#include <linux/rbtree.h>
#include <linux/sbitmap.h>
struct blk_mq_tags { unsigned int nr_tags, nr_reserved_tags; struct sbitmap_queue bitmap_tags, breserved_tags; };
#ifdef SHIM_SQ
#include "sq.h"
#else
#include <elevator.h>
/* The tags of a scheduler are made before it. */
static inline void blk_mq_set_min_shallow_depth(struct request_queue *q, unsigned int depth)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned int i;

	queue_for_each_hw_ctx(q, hctx, i)
		sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, depth);
}
#define SHIM_OPS(type) (&(type)->ops)
#define SHIM_QUEUE_LOCK(q) (&(q)->queue_lock)
#define shim_insert_merge(q, rq, free) elv_attempt_insert_merge(q, rq, free)
#define shim_run_single(s, c, rq) BUG()
/* The clock at the caller's time 0, when jiffies are 2^32. */
#define SHIM_BOOT_NS (300 * NSEC_PER_SEC)
#endif

#endif
