/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a scheduler with groups uses of control groups, of I/O contexts and of blktrace's messages.
 *
 * One policy of groups at a time, one device: a group has one blkg. blk-cgroup.h of the tree is switched off;
 * blk-cgroup-rwstat.h, which counts I/O, is the tree's. Not here: what the calls do (cgroup.c).
 */
#ifndef SHIM_CGROUP_H
#define SHIM_CGROUP_H

struct cgroup { int level; };
struct cgroup_subsys { int unused; };
struct cgroup_subsys_state { u64 serial_nr; struct cgroup *cgroup; struct cgroup_subsys_state *parent; };
extern struct cgroup_subsys io_cgrp_subsys;
#ifdef SHIM_SQ
#define cgroup_subsys_on_dfl(subsystem) false
#else
#define cgroup_subsys_on_dfl(subsystem) true
#endif
#define CGROUP_WEIGHT_DFL 100
#define CGROUP_WEIGHT_MIN 1
#define CGROUP_WEIGHT_MAX 10000

struct blkcg_policy_data { struct blkcg *blkcg; int plid; };
struct blkg_policy_data { struct blkcg_gq *blkg; int plid; bool online; struct rcu_head rcu_head; };
struct blkcg {
	struct cgroup_subsys_state css;
	spinlock_t lock;
	struct hlist_head blkg_list;
	struct blkcg_policy_data *cpd;
	const char *shim_path;
};
struct blkcg_gq {
	struct request_queue *q;
	struct list_head q_node;
	struct hlist_node blkcg_node;
	struct blkcg *blkcg;
	struct blkcg_gq *parent;
	struct blkg_policy_data *pd;
	int shim_refs;
#ifdef SHIM_SQ
	struct blkg_rwstat stat_bytes;
#endif
	bool online;
};
struct kernfs_open_file { struct cgroup_subsys_state *shim_css; };
struct cftype {
	const char *name;
	unsigned long private;
	unsigned int flags;
	int (*seq_show)(struct seq_file *, void *);
	int (*write_u64)(struct cgroup_subsys_state *, struct cftype *, u64);
	ssize_t (*write)(struct kernfs_open_file *, char *, size_t, loff_t);
};
#define CFTYPE_NOT_ON_ROOT 1
struct blkg_conf_ctx { char *input, *body; struct block_device *bdev; struct blkcg_gq *blkg; };
struct blkcg_policy {
	int plid;
	struct cftype *dfl_cftypes, *legacy_cftypes;
	struct blkcg_policy_data *(*cpd_alloc_fn)(gfp_t);
	void (*cpd_init_fn)(struct blkcg_policy_data *);
	void (*cpd_free_fn)(struct blkcg_policy_data *);
	void (*cpd_bind_fn)(struct blkcg_policy_data *);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	struct blkg_policy_data *(*pd_alloc_fn)(struct gendisk *, struct blkcg *, gfp_t);
#elif defined(SHIM_SQ)
	struct blkg_policy_data *(*pd_alloc_fn)(gfp_t, int);
#else
	struct blkg_policy_data *(*pd_alloc_fn)(gfp_t, struct request_queue *, struct blkcg *);
#endif
	void (*pd_init_fn)(struct blkg_policy_data *);
	void (*pd_online_fn)(struct blkg_policy_data *);
	void (*pd_offline_fn)(struct blkg_policy_data *);
	void (*pd_free_fn)(struct blkg_policy_data *);
	void (*pd_reset_stats_fn)(struct blkg_policy_data *);
	void (*pd_stat_fn)(struct blkg_policy_data *, struct seq_file *);
};
#define css_to_blkcg(c) ({ struct cgroup_subsys_state *shim_c = (c); \
	shim_c ? container_of(shim_c, struct blkcg, css) : NULL; })
#define seq_css(m) ((struct cgroup_subsys_state *)(m)->private)
#define seq_cft(m) ((struct cftype *)(m)->file)
#define of_css(f) ((f)->shim_css)
#define blkg_to_pd(blkg, policy) ({ struct blkcg_gq *shim_b = (blkg); shim_b ? shim_b->pd : NULL; })
#define pd_to_blkg(p) ({ struct blkg_policy_data *shim_d = (p); shim_d ? shim_d->blkg : NULL; })
#define blkcg_to_cpd(c, policy) ({ struct blkcg *shim_g = (c); shim_g ? shim_g->cpd : NULL; })
#define blkg_get(b) ((void)((b)->shim_refs++))
#define blkg_put(b) ({ BUG_ON((b)->shim_refs == 0); (void)((b)->shim_refs--); })
#define blkg_path(b, room, bytes) snprintf(room, bytes, "%s", (b)->blkcg->shim_path)
#define call_rcu(head, f) f(head)
int blkcg_policy_register(struct blkcg_policy *policy);
#define blkcg_deactivate_policy(of, policy) do { } while (0)
#define blkcg_policy_unregister(policy) do { } while (0)
int blkcg_activate_policy(void *disk_or_queue, struct blkcg_policy *policy);
#define bio_associate_blkg_from_css(bio, css) shim_associate(bio, css)
void shim_associate(struct bio *bio, struct cgroup_subsys_state *css);

/* Counters, of all CPUs together. */
#define BLKG_STAT_CPU_BATCH (INT_MAX / 2)
#define percpu_counter_init(c, value, gfp) ((c)->count = (value), 0)
#define percpu_counter_destroy(c) do { } while (0)
#define percpu_counter_add_batch(c, n, batch) ((void)((c)->count += (s64)(n)))
#define percpu_counter_sum_positive(c) max((c)->count, 0LL)
#define percpu_counter_set(c, n) ((void)((c)->count = (n)))

/* What a task's I/O context has of this device; made when its first request is set up. */
struct io_cq *ioc_find_get_icq(struct request_queue *q);
#define ioc_lookup_icq(...) (current->shim_icq)
#define put_io_context(ioc) do { } while (0)
#define task_nice_ioprio(t) IOPRIO_PRIO_LEVEL((t)->nice)
#define task_nice_ioclass(t) IOPRIO_PRIO_CLASS((t)->nice)

/* Actuators of a disk. */
struct blk_independent_access_range { sector_t sector, nr_sectors; };
struct blk_independent_access_ranges {
	unsigned int nr_ia_ranges;
	struct blk_independent_access_range ia_range[SHIM_RANGES_MAX];
};
#define get_capacity(disk) ((sector_t)1 << 50)
#define bdi_dev_name(bdi) "sim"

/* Messages: collected if the caller listens. */
bool shim_listens(void);
void shim_message(const char *format, ...);
#define blk_trace_note_message_enabled(q) shim_listens()
#define blk_add_trace_msg(q, ...) do { if (shim_listens()) shim_message(__VA_ARGS__); } while (0)
#define blk_add_cgroup_trace_msg(q, css, ...) blk_add_trace_msg(q, __VA_ARGS__)

#endif
