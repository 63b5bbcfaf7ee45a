/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What dm-multipath and its path selectors use of device-mapper, of the block layer and of workqueues.
 *
 * Included before each of their C files, in place of block.h. dm.h and dm-rq.h of the tree are switched off
 * here by their guards. Not here: what the calls do (dm.c).
 */
#ifndef SHIM_DM_H
#define SHIM_DM_H

#include "linux.h"
#include "call.h"

#define DM_INTERNAL_H
#define DM_RQ_INTERNAL_H
#define CONFIG_DM_UEVENT 1

#define ENXIO 6
#define ENOTCONN 107
#define ULLONG_MAX U64_MAX
#define assign_bit(n, p, v) do { if (v) set_bit(n, p); else clear_bit(n, p); } while (0)
#define time_after64(a, b) ((s64)((b) - (a)) < 0)
#define time_before64(a, b) time_after64(b, a)
int strcasecmp(const char *a, const char *b);
char *kstrdup(const char *s, gfp_t gfp);
/* Numbers that a module has as a parameter, which the test sets. */
#undef module_param_named
#define module_param_named(name, variable, type, mode) unsigned long *shim_param_##name(void) { return &variable; }

/* Masks of CPUs, by value. */
struct cpumask { unsigned long bits[4]; };
typedef struct cpumask cpumask_var_t[1];
#define zalloc_cpumask_var(m, gfp) (memset(*(m), 0, sizeof(**(m))), true)
#define free_cpumask_var(m) do { } while (0)
#define cpumask_set_cpu(c, m) set_bit(c, (m)->bits)
#define cpumask_clear_cpu(c, m) clear_bit(c, (m)->bits)
#define for_each_cpu(c, m) for_each_set_bit(c, (m)->bits, NR_CPUS)
#define cpumask_pr_args(m) nr_cpu_ids, (m)->bits
int cpumask_parse(const char *text, struct cpumask *m);
int cpu_to_node(int cpu);
const struct cpumask *cpumask_of_node(int node);

/* Work items: the test runs them. */
struct workqueue_struct { int unused; };
struct workqueue_struct *shim_workqueue(void);
#define WQ_MEM_RECLAIM 1
#define WQ_PERCPU 2
#define alloc_workqueue(name, flags, max) shim_workqueue()
#define alloc_ordered_workqueue(name, flags) shim_workqueue()
#define destroy_workqueue(wq) do { } while (0)
/* False: it is queued already. */
bool shim_queue_work(struct work_struct *work, unsigned long delay);
void shim_flush_work(struct work_struct *work);
#define INIT_WORK(w, f) ((w)->func = (f))
#define INIT_DELAYED_WORK(w, f) INIT_WORK(&(w)->work, f)
#define queue_work(wq, w) shim_queue_work(w, 0)
#define queue_delayed_work(wq, w, delay) shim_queue_work(&(w)->work, delay)
#define schedule_work(w) shim_queue_work(w, 0)
#define flush_work(w) shim_flush_work(w)
/* The wait that follows it is for the same work. */
#define flush_workqueue(wq) do { } while (0)
/* A suspension that waits gives way to the test. */
#define DEFINE_WAIT(n) wait_queue_entry_t n
#define prepare_to_wait(q, w, state) ((void)(w))
#define finish_wait(q, w) ((void)(w))
void io_schedule(void);
void shim_wake(void);
#undef wake_up
#define wake_up(q) shim_wake()

/* Requests, bios and their queues. */
typedef u32 blk_opf_t;
typedef u8 blk_status_t;
typedef unsigned int blk_mode_t;
enum {
	BLK_STS_OK, BLK_STS_NOTSUPP, BLK_STS_TIMEOUT, BLK_STS_NOSPC, BLK_STS_TRANSPORT, BLK_STS_TARGET, BLK_STS_NEXUS,
	BLK_STS_MEDIUM, BLK_STS_PROTECTION, BLK_STS_RESOURCE, BLK_STS_IOERR, BLK_STS_DM_REQUEUE, BLK_STS_AGAIN,
};
#define BLK_STS_RESV_CONFLICT BLK_STS_NEXUS
#define REQ_NOMERGE (1u << 14)
#define REQ_FAILFAST_TRANSPORT (1u << 9)
#define BLK_MQ_REQ_NOWAIT 1
#define SECTOR_SHIFT 9
struct request_queue { bool dying, busy; };
struct block_device { struct request_queue *bd_queue; dev_t bd_dev; };
struct bio;
typedef void bio_end_io_t(struct bio *bio);
struct bvec_iter { sector_t bi_sector; unsigned int bi_size, bi_idx, bi_bvec_done; };
struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	blk_opf_t bi_opf;
	unsigned short bi_flags;
	blk_status_t bi_status;
	struct bvec_iter bi_iter;
	atomic_t __bi_remaining;
	bio_end_io_t *bi_end_io;
};
struct request { blk_opf_t cmd_flags; unsigned int __data_len; struct bio *bio, *biotail; u64 io_start_time_ns; };
#define blk_rq_bytes(rq) ((rq)->__data_len)
#define bdev_get_queue(b) ((b)->bd_queue)
#define bdev_nr_sectors(b) ((sector_t)0)
#define blk_queue_dying(q) ((q)->dying)
#define blk_lld_busy(q) ((q)->busy)
#define bio_set_dev(b, dev) ((b)->bi_bdev = (dev))
/* Errors that another path may not have. */
static inline bool blk_path_error(blk_status_t error)
{
	switch (error) {
	case BLK_STS_NOTSUPP:
	case BLK_STS_NOSPC:
	case BLK_STS_TARGET:
	case BLK_STS_NEXUS:
	case BLK_STS_MEDIUM:
	case BLK_STS_PROTECTION:
		return false;
	}
	return true;
}
struct request *blk_mq_alloc_request(struct request_queue *q, blk_opf_t opf, unsigned int flags);
void blk_mq_free_request(struct request *rq);
void bio_endio(struct bio *bio);
void submit_bio_noacct(struct bio *bio);
struct blk_plug { int unused; };
#define blk_start_plug(p) do { } while (0)
#define blk_finish_plug(p) do { } while (0)
struct bio_list { struct bio *head, *tail; };
#define bio_list_init(l) ((l)->head = (l)->tail = NULL)
#define bio_list_empty(l) ((l)->head == NULL)
static inline void bio_list_add(struct bio_list *l, struct bio *bio)
{
	bio->bi_next = NULL;
	if (l->head)
		l->tail->bi_next = bio;
	else
		l->head = bio;
	l->tail = bio;
}
static inline void bio_list_merge(struct bio_list *l, struct bio_list *from)
{
	if (!from->head)
		return;
	if (l->head)
		l->tail->bi_next = from->head;
	else
		l->head = from->head;
	l->tail = from->tail;
}
#define bio_list_merge_init(l, from) do { bio_list_merge(l, from); bio_list_init(from); } while (0)
static inline struct bio *bio_list_pop(struct bio_list *l)
{
	struct bio *bio = l->head;

	if (bio)
		l->head = bio->bi_next;
	return bio;
}

/* What 6.18 probes paths with, by an ioctl, which is not called. */
#define ENOTTY 25
#define PAGE_SIZE 4096
#define REQ_OP_READ 0
#define DM_IOCTL 0xfd
#define DM_MPATH_PROBE_PATHS 0xfd12
#define _IOC_TYPE(cmd) ((cmd) >> 8)
struct page;
struct page *alloc_page(gfp_t gfp);
void __free_page(struct page *page);
unsigned int bdev_logical_block_size(struct block_device *bdev);
struct bio *bio_alloc(struct block_device *bdev, unsigned short vecs, blk_opf_t opf, gfp_t gfp);
void __bio_add_page(struct bio *bio, struct page *page, unsigned int bytes, unsigned int offset);
int submit_bio_wait(struct bio *bio);
void bio_put(struct bio *bio);
#define wait_event_lock_irq(wait, condition, lock) BUG_ON(!(condition))

/* Device handlers of SCSI: the test says how an activation ends. */
enum {
	SCSI_DH_OK, SCSI_DH_DEV_FAILED, SCSI_DH_DEV_TEMP_BUSY, SCSI_DH_DEV_UNSUPP, SCSI_DH_DEVICE_MAX, SCSI_DH_NOTCONN,
	SCSI_DH_CONN_FAILURE, SCSI_DH_TRANSPORT_MAX, SCSI_DH_IO, SCSI_DH_INVALID_IO, SCSI_DH_RETRY, SCSI_DH_IMM_RETRY,
	SCSI_DH_TIMED_OUT, SCSI_DH_RES_TEMP_UNAVAIL, SCSI_DH_DEV_OFFLINED, SCSI_DH_NOMEM, SCSI_DH_NOSYS,
	SCSI_DH_DRIVER_MAX,
};
int scsi_dh_activate(struct request_queue *q, void (*done)(void *, int), void *data);
#define scsi_dh_attached_handler_name(q, gfp) NULL
#define scsi_dh_attach(q, name) 0
#define scsi_dh_set_params(q, params) 0

/* Device-mapper. */
#define DM_NAME "device-mapper"
#define DMERR(...) do { } while (0)
#define DMWARN(...) do { } while (0)
#define DMINFO(...) do { } while (0)
#define DMDEBUG(...) do { } while (0)
#define DMWARN_LIMIT(...) do { } while (0)
#define DMDEBUG_LIMIT(...) do { } while (0)
#define DM_ENDIO_DONE 0
#define DM_ENDIO_INCOMPLETE 1
#define DM_ENDIO_REQUEUE 2
#define DM_ENDIO_DELAY_REQUEUE 3
#define DM_MAPIO_SUBMITTED 0
#define DM_MAPIO_REMAPPED 1
#define DM_MAPIO_REQUEUE 2
#define DM_MAPIO_DELAY_REQUEUE 3
#define DM_MAPIO_KILL 4
#define DM_TARGET_SINGLETON 1
#define DM_TARGET_IMMUTABLE 2
#define DM_TARGET_PASSES_INTEGRITY 4
#define DM_TARGET_ATOMIC_WRITES 8
typedef enum { STATUSTYPE_INFO, STATUSTYPE_TABLE, STATUSTYPE_IMA } status_type_t;
enum dm_queue_mode { DM_TYPE_NONE, DM_TYPE_BIO_BASED, DM_TYPE_REQUEST_BASED };
union map_info { void *ptr; };
struct mapped_device { bool suspended, noflush; };
struct dm_dev { struct block_device *bdev; char name[16]; };
struct dm_table { struct mapped_device md; };
struct dm_target;
typedef int (*iterate_devices_callout_fn)(struct dm_target *, struct dm_dev *, sector_t, sector_t, void *);
struct target_type {
	const char *name;
	struct module *module;
	unsigned int version[3];
	u64 features;
	int (*ctr)(struct dm_target *ti, unsigned int argc, char **argv);
	void (*dtr)(struct dm_target *ti);
	int (*map)(struct dm_target *ti, struct bio *bio);
	int (*clone_and_map_rq)(struct dm_target *ti, struct request *rq, union map_info *info, struct request **clone);
	void (*release_clone_rq)(struct request *clone, union map_info *info);
	int (*end_io)(struct dm_target *ti, struct bio *bio, blk_status_t *error);
	int (*rq_end_io)(struct dm_target *ti, struct request *clone, blk_status_t error, union map_info *info);
	void (*presuspend)(struct dm_target *ti);
	void (*postsuspend)(struct dm_target *ti);
	void (*resume)(struct dm_target *ti);
	void (*status)(struct dm_target *ti, status_type_t type, unsigned int flags, char *out, unsigned int room);
	int (*message)(struct dm_target *ti, unsigned int argc, char **argv, char *out, unsigned int room);
	/* Its arguments differ by kernel; it is not called. */
	void *prepare_ioctl;
	int (*iterate_devices)(struct dm_target *ti, iterate_devices_callout_fn fn, void *data);
	int (*busy)(struct dm_target *ti);
};
struct dm_target {
	struct dm_table *table;
	struct target_type *type;
	sector_t begin, len;
	unsigned int num_flush_bios, num_discard_bios, num_write_zeroes_bios, per_io_data_size;
	void *private;
	char *error;
};
struct dm_arg_set { unsigned int argc; char **argv; };
struct dm_arg { unsigned int min, max; char *error; };
int dm_read_arg(const struct dm_arg *arg, struct dm_arg_set *set, unsigned int *value, char **error);
int dm_read_arg_group(const struct dm_arg *arg, struct dm_arg_set *set, unsigned int *value, char **error);
const char *dm_shift_arg(struct dm_arg_set *set);
void dm_consume_args(struct dm_arg_set *set, unsigned int count);
int dm_register_target(struct target_type *type);
#define dm_unregister_target(type) do { } while (0)
int dm_get_device(struct dm_target *ti, const char *path, blk_mode_t mode, struct dm_dev **result);
#define dm_put_device(ti, dev) do { } while (0)
int dm_devt_from_path(const char *path, dev_t *dev);
#define dm_table_get_mode(t) 0
#define dm_table_set_type(t, mode) do { } while (0)
#define dm_table_get_md(t) (&(t)->md)
#define dm_table_device_name(t) "mpath"
#define dm_table_event(t) do { } while (0)
#define dm_noflush_suspending(ti) ((ti)->table->md.noflush)
#define dm_suspended(ti) ((ti)->table->md.suspended)
void dm_table_run_md_queue_async(struct dm_table *t);
void dm_mq_kick_requeue_list(struct mapped_device *md);
void *dm_per_bio_data(struct bio *bio, size_t bytes);
u64 dm_start_time_ns_from_clone(struct bio *bio);
/* Text of a status; one conversion is the kernel's own, a mask (%*pb). */
int shim_emit(char *out, int room, const char *format, ...);
#define DMEMIT(...) (sz += sz >= maxlen ? 0 : shim_emit(result + sz, maxlen - sz, __VA_ARGS__))
#define DMEMIT_TARGET_NAME_VERSION(t) \
	DMEMIT("target_name=%s,target_version=%u.%u.%u", (t)->name, (t)->version[0], (t)->version[1], (t)->version[2])

/* At the end of dm-mpath.c, where its structures are known: what the test sees of them. */
struct dm_path;
void shim_say(const char *format, ...);
const char *shim_name_of(struct dm_path *path);
#if SHIM_FILE == 0
#undef MODULE_LICENSE
#define MODULE_LICENSE(x) \
	struct dm_path *shim_path_of(void *mpio) \
	{ \
		struct pgpath *p = ((struct dm_mpath_io *)mpio)->pgpath; \
		return p ? &p->path : NULL; \
	} \
	struct work_struct *shim_activation_of(struct dm_path *path) { return &path_to_pgpath(path)->activate_path.work; } \
	struct dm_path *shim_activated(void *data) { return &((struct pgpath *)data)->path; } \
	struct timer_list *shim_timer_of(struct dm_target *ti) { return &((struct multipath *)ti->private)->nopath_timer; } \
	struct work_struct *shim_worker_of(struct dm_target *ti) \
	{ \
		return &((struct multipath *)ti->private)->process_queued_bios; \
	} \
	void shim_state_of(struct dm_target *ti) \
	{ \
		static const struct { int bit; const char *name; } names[] = { \
			{ MPATHF_QUEUE_IO, "queue_io" }, { MPATHF_QUEUE_IF_NO_PATH, "queue_if_no_path" }, \
			{ MPATHF_SAVED_QUEUE_IF_NO_PATH, "saved" }, { MPATHF_PG_INIT_DISABLED, "disabled" }, \
			{ MPATHF_PG_INIT_REQUIRED, "required" }, { MPATHF_PG_INIT_DELAY_RETRY, "delay_retry" }, \
		}; \
		struct multipath *m = ti->private; \
		int i; \
		shim_say("flags:"); \
		for (i = 0; i < ARRAY_SIZE(names); i++) \
			if (test_bit(names[i].bit, &m->flags)) \
				shim_say(" %s", names[i].name); \
		shim_say("\ncurrent: %s", m->current_pgpath ? shim_name_of(&m->current_pgpath->path) : "-"); \
		shim_say(" of %u, next %u, valid %d%s\n", m->current_pg ? m->current_pg->pg_num : 0, \
			 m->next_pg ? m->next_pg->pg_num : 0, atomic_read(&m->nr_valid_paths), \
			 atomic_read(&m->pg_init_in_progress) ? ", activating" : ""); \
	} \
	size_t shim_mpio_bytes(void) { return sizeof(struct dm_mpath_io); }
#endif

#endif
