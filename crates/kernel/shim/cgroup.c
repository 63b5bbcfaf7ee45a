/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups of a queue, I/O contexts of its tasks, and messages to blktrace.
 *
 * Groups are made by the caller before the first request, parents first; the root is number 0. Part of
 * shim.c, which has the queue.
 */
#ifndef SHIM_SQ
#include "blk-cgroup-rwstat.h"
#endif

struct cgroup_subsys io_cgrp_subsys;
static struct blkcg_policy *shim_policy;

struct shim_group { struct cgroup cgroup; struct blkcg blkcg; struct blkcg_gq blkg; char path[128]; };

int blkcg_policy_register(struct blkcg_policy *policy)
{
	shim_policy = policy;
	return 0;
}

/* A group's data of the policy, and that of its only device. */
static void shim_give_policy(struct shim_group *g)
{
	struct blkcg_policy_data *cpd = shim_policy->cpd_alloc_fn(GFP_KERNEL);
	struct blkg_policy_data *pd;

	BUG_ON(!cpd);
	cpd->blkcg = &g->blkcg;
	g->blkcg.cpd = cpd;
	if (shim_policy->cpd_init_fn)
		shim_policy->cpd_init_fn(cpd);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
	pd = shim_policy->pd_alloc_fn(g->blkg.q->disk, &g->blkcg, GFP_KERNEL);
#elif defined(SHIM_SQ)
	pd = shim_policy->pd_alloc_fn(GFP_KERNEL, g->blkg.q->node);
#else
	pd = shim_policy->pd_alloc_fn(GFP_KERNEL, g->blkg.q, &g->blkcg);
#endif
	BUG_ON(!pd);
	pd->blkg = &g->blkg;
	g->blkg.pd = pd;
}

static struct shim_group *shim_new_group(struct shim_queue *s, unsigned int parent, const char *path)
{
	struct shim_group *g = &s->groups[s->group_count];

	BUG_ON(s->group_count == s->config.groups);
	g->cgroup.level = s->group_count ? s->groups[parent].cgroup.level + 1 : 0;
	g->blkcg.css.cgroup = &g->cgroup;
	g->blkcg.css.serial_nr = ++s->group_count;
	snprintf(g->path, sizeof(g->path), "/%s", path);
	g->blkcg.shim_path = g->path;
	spin_lock_init(&g->blkcg.lock);
	INIT_HLIST_HEAD(&g->blkcg.blkg_list);
	g->blkg.q = &s->q;
	g->blkg.blkcg = &g->blkcg;
	g->blkg.shim_refs = 1;
	g->blkg.parent = s->group_count > 1 ? &s->groups[parent].blkg : NULL;
	hlist_add_head(&g->blkg.blkcg_node, &g->blkcg.blkg_list);
	list_add(&g->blkg.q_node, &s->q.blkg_list);
	g->blkg.online = true;
	return g;
}

/* Written to the file of the group, as a user does, before the device has data of it. */
static void shim_set_weight(struct shim_group *g, unsigned int weight)
{
#ifdef SHIM_SQ
	struct cftype *file = shim_policy->legacy_cftypes;

	while (strcmp(file->name, "weight") || file->flags != CFTYPE_NOT_ON_ROOT)
		file++;
	BUG_ON(file->write_u64(&g->blkcg.css, file, max(weight, SHIM_LEAST_WEIGHT)));
#else
	struct cftype *file = shim_policy->dfl_cftypes;
	struct kernfs_open_file open = { &g->blkcg.css };
	char text[16];

	while (file->name && !file->write)
		file++;
	if (!file->name)
		return;
	snprintf(text, sizeof(text), "%u", weight);
	BUG_ON(file->write(&open, text, strlen(text), 0) < 0);
#endif
}

static void shim_add_group(struct shim_queue *s, struct shim_call *c)
{
	struct shim_group *g;

	if (!shim_policy)
		return;
	g = shim_new_group(s, c->group, c->name);
	shim_give_policy(g);
	shim_set_weight(g, c->weight);
	shim_policy->pd_init_fn(g->blkg.pd);
	g->blkg.pd->online = true;
	if (shim_policy->pd_online_fn)
		shim_policy->pd_online_fn(g->blkg.pd);
}

/* The policy becomes active while there is but the root. */
int blkcg_activate_policy(void *disk_or_queue, struct blkcg_policy *policy)
{
	struct shim_group *root = &shim_queue->groups[0];

	shim_give_policy(root);
	policy->pd_init_fn(root->blkg.pd);
	root->blkg.pd->online = true;
	return 0;
}

void shim_associate(struct bio *bio, struct cgroup_subsys_state *css)
{
	bio->bi_blkg = hlist_entry_safe(css_to_blkcg(css)->blkg_list.first, struct blkcg_gq, blkcg_node);
}

#ifndef SHIM_SQ
int blkg_rwstat_init(struct blkg_rwstat *stat, gfp_t gfp)
{
	memset(stat, 0, sizeof(*stat));
	return 0;
}
void blkg_rwstat_exit(struct blkg_rwstat *stat) { }
#endif

/* Tasks. */
/* Without a command about it, it is an ordinary one of the root group. */
static struct task_struct *shim_task(struct shim_queue *s, unsigned int number)
{
	struct task_struct *t;

	BUG_ON(number >= s->config.tasks);
	for (; s->tasks_used <= number; s->tasks_used++) {
		t = &s->tasks[s->tasks_used];
		memset(t, 0, sizeof(*t));
		t->pid = s->tasks_used;
		t->nice = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NORM);
		t->io_context = &t->shim_ioc;
		atomic_set(&t->shim_ioc.active_ref, 1);
	}
	return &s->tasks[number];
}

/* nice -20 and no I/O context. */
static struct task_struct *shim_kworker(struct shim_queue *s, int pid)
{
	s->kworker.pid = pid;
	s->kworker.nice = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 0);
	return &s->kworker;
}

static void shim_set_task(struct shim_queue *s, struct shim_call *c)
{
	struct task_struct *t = &s->tasks[c->io.task];

	t->pid = c->pid;
	t->ioprio = t->shim_ioc.ioprio = c->ioprio;
	t->nice = c->nice;
}

struct io_cq *ioc_find_get_icq(struct request_queue *q)
{
	struct task_struct *t = current;

	if (!t->shim_icq) {
		t->shim_icq = kzalloc(q->elevator->type->icq_size, GFP_KERNEL);
		t->shim_icq->q = q;
		t->shim_icq->ioc = &t->shim_ioc;
	}
	return t->shim_icq;
}

/* Requests may still refer to the old one. */
static void shim_exit_task(struct shim_queue *s)
{
	struct io_cq *icq = current->shim_icq;

	current->shim_icq = NULL;
	if (icq && SHIM_OPS(s->q.elevator->type)->exit_icq)
		SHIM_OPS(s->q.elevator->type)->exit_icq(icq);
}

/* Messages. */
u64 shim_number_of(const void *object);

/* A request by its slot, with the high bits of an address; another object by its number. */
u64 shim_pointer(const void *p)
{
	struct request *rq = (struct request *)p;

	if (!p)
		return 0;
	if (rq >= shim_queue->rqs && rq < shim_queue->rqs + shim_queue->config.requests)
		return rq->shim_id | (u64)0xffff << 48;
	return shim_number_of(p);
}

bool shim_listens(void) { return shim_this && shim_this->log_room; }

/* blktrace's own record is here. */
void shim_traced(void)
{
	if (shim_listens())
		shim_message("\001");
}
