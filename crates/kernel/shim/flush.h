/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What blk-flush.c uses of the block layer, in place of block.h: blk.h, blk-mq.h and their like of the tree are
 * switched off here by their guards. Not here: what the calls do (flush.c).
 */
#ifndef SHIM_FLUSH_H
#define SHIM_FLUSH_H

#include "linux.h"
#include "call.h"

#define BLK_INTERNAL_H
#define INT_BLK_MQ_H
#define INT_BLK_MQ_TAG_H
#define BLK_MQ_SCHED_H

#define ffz(x) __builtin_ctzl(~(unsigned long)(x))
#define cache_line_size() 64
typedef u32 blk_opf_t;
typedef u8 blk_status_t;
typedef u32 req_flags_t;
#define BLK_STS_OK 0
#define BLK_STS_IOERR 10
#define REQ_OP_WRITE 1
#define REQ_OP_FLUSH 2
#define REQ_FAILFAST_MASK (7u << 8)
#define REQ_SYNC (1u << 11)
#define REQ_FUA (1u << 17)
#define REQ_PREFLUSH (1u << 18)
#define REQ_DRV (1u << 19)
#define RQF_FLUSH_SEQ (1u << 4)
#define RQF_MQ_INFLIGHT (1u << 6)
#define BLK_MQ_NO_TAG (-1)
#define SECTOR_SHIFT 9
enum mq_rq_state { MQ_RQ_IDLE, MQ_RQ_IN_FLIGHT, MQ_RQ_COMPLETE };
enum rq_end_io_ret { RQ_END_IO_NONE, RQ_END_IO_FREE };
enum { STAT_READ, STAT_WRITE, STAT_DISCARD, STAT_FLUSH };

struct request;
typedef enum rq_end_io_ret (rq_end_io_fn)(struct request *rq, blk_status_t error);
struct bvec_iter { sector_t bi_sector; };
struct bio { struct bvec_iter bi_iter; };
struct bio_vec;
struct block_device { int unused; };
struct gendisk { struct block_device *part0; };
/* Up to 6.3 a list of data in flight, later its number. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SHIM_FLUSH_COUNTS 1
#endif
struct blk_flush_queue {
	spinlock_t mq_flush_lock;
	unsigned int flush_pending_idx:1, flush_running_idx:1;
	blk_status_t rq_status;
	unsigned long flush_pending_since;
	struct list_head flush_queue[2];
#ifdef SHIM_FLUSH_COUNTS
	unsigned long flush_data_in_flight;
#else
	struct list_head flush_data_in_flight;
#endif
	struct request *flush_rq;
};
struct blk_mq_ctx { int unused; };
struct blk_mq_hw_ctx { struct blk_flush_queue *fq; };
#define BLK_FEAT_WRITE_CACHE 1
#define BLK_FEAT_FUA 2
enum { QUEUE_FLAG_WC, QUEUE_FLAG_FUA };
struct queue_limits { unsigned int features; };
struct request_queue {
	void *elevator;
	unsigned long queue_flags;
	struct queue_limits limits;
	spinlock_t requeue_lock;
	struct list_head requeue_list, flush_list;
	struct gendisk *disk;
};
#define blk_queue_write_cache(q) ((q)->limits.features & BLK_FEAT_WRITE_CACHE)
struct request {
	struct request_queue *q;
	struct blk_mq_ctx *mq_ctx;
	struct blk_mq_hw_ctx *mq_hctx;
	blk_opf_t cmd_flags;
	req_flags_t rq_flags;
	int tag, internal_tag;
	unsigned int __data_len;
	sector_t __sector;
	struct bio *bio, *biotail;
	struct list_head queuelist;
	u64 start_time_ns;
	enum mq_rq_state state;
	atomic_t ref;
	rq_end_io_fn *end_io;
	struct { unsigned int seq; struct list_head list; rq_end_io_fn *saved_end_io; } flush;
	/* Taken by the test; with the device. */
	bool shim_used, shim_issued;
};
#define blk_rq_sectors(rq) ((rq)->__data_len >> SECTOR_SHIFT)
#define req_ref_set(rq, n) atomic_set(&(rq)->ref, n)
#define req_ref_put_and_test(rq) atomic_dec_and_test(&(rq)->ref)
#define part_stat_lock() do { } while (0)
#define part_stat_unlock() do { } while (0)
#define part_stat_inc(part, field) do { } while (0)
#define part_stat_add(part, field, n) do { } while (0)
#define blk_mq_sched_restart(hctx) do { } while (0)
/* Without the queue since 6.14. */
#define blk_mq_map_queue(...) shim_map_queue()
struct blk_mq_hw_ctx *shim_map_queue(void);
void blk_rq_init(struct request_queue *q, struct request *rq);
void blk_mq_end_request(struct request *rq, blk_status_t error);
void blk_mq_put_driver_tag(struct request *rq);
void blk_mq_add_to_requeue_list(struct request *rq, bool at_head, bool kick);
void blk_mq_kick_requeue_list(struct request_queue *q);
void blk_mq_request_bypass_insert(struct request *rq, bool at_head, bool run);
void bio_init(struct bio *bio, struct block_device *dev, struct bio_vec *vecs, unsigned short max, blk_opf_t opf);
int submit_bio_wait(struct bio *bio);
struct blk_flush_queue *blk_alloc_flush_queue(int node, int bytes, gfp_t gfp);
#ifdef SHIM_FLUSH_COUNTS
bool blk_insert_flush(struct request *rq);
#else
void blk_insert_flush(struct request *rq);
#endif

#endif
