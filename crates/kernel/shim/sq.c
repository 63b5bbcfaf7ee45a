/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The single-queue path around a scheduler of a kernel up to 4.20: its calls as those of blk-mq, under
 * q->queue_lock, and the calls that blk-mq does not have. Part of shim.c, which has the queue.
 *
 * A request leaves q->queue_head when it is dispatched: the caller is the driver.
 */
#ifdef SHIM_SQ

static struct elevator_ops *sq_ops(struct request_queue *q) { return &q->elevator->type->ops.sq; }

void __blk_run_queue(struct request_queue *q) { shim_this->run_now = 1; }
void shim_schedule_run(void) { shim_this->run = 1; }
/* A request was absorbed; the caller frees it, and says so (SHIM_FINISH). */
void __blk_put_request(struct request_queue *q, struct request *rq) { shim_absorbed(rq); }
struct blkcg *shim_root_blkcg(void) { return &shim_queue->groups[0].blkcg; }

bool cgroup_is_descendant(struct cgroup *group, struct cgroup *ancestor)
{
	struct blkcg_gq *at = &container_of(group, struct shim_group, cgroup)->blkg;
	struct blkcg_gq *above = &container_of(ancestor, struct shim_group, cgroup)->blkg;

	while (at && at != above)
		at = at->parent;
	return at != NULL;
}

unsigned long strtoul(const char *text, char **end, int base);
unsigned long simple_strtoul(const char *text, char **end, unsigned int base)
{
	return *text >= '0' && *text <= '9' ? strtoul(text, end, base) : 0;
}

int ioprio_best(unsigned short a, unsigned short b)
{
	const unsigned short usual = IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_NORM);

	a = ioprio_valid(a) ? a : usual;
	b = ioprio_valid(b) ? b : usual;
	return min(a, b);
}

static int sq_init(struct request_queue *q, struct elevator_type *type)
{
	int error;

	shim_clock.ktime_ns = SHIM_BOOT_NS;
	q->queue_lock = &q->shim_lock;
	INIT_LIST_HEAD(&q->queue_head);
	error = type->ops.sq.elevator_init_fn(q, type);
	if (!error && type->ops.sq.elevator_registered_fn)
		type->ops.sq.elevator_registered_fn(q);
	return error;
}

static void sq_exit(struct elevator_queue *e) { e->type->ops.sq.elevator_exit_fn(e); }

/* What a process has of this queue, and the scheduler's data of the request. */
static void sq_set_up(struct request *rq)
{
	struct request_queue *q = rq->q;
	bool is_new = !current->shim_icq;

	if (rq->elv.icq || !q->elevator->type->icq_size)
		return;
	/* By the priority of a bio the caller says that of its process at that time. */
	current->shim_ioc.ioprio = ioprio_valid(rq->ioprio) ? rq->ioprio : current->ioprio;
	rq->elv.icq = ioc_find_get_icq(q);
	atomic_set(&current->shim_ioc.active_ref, 1);
	if (is_new && sq_ops(q)->elevator_init_icq_fn)
		sq_ops(q)->elevator_init_icq_fn(rq->elv.icq);
	BUG_ON(elv_set_request(q, rq, rq->bio, GFP_NOIO));
}

/* A bio joins a request at an end, which may reach another one then. */
static bool sq_join(struct request_queue *q, struct request *rq, struct bio *bio, enum elv_merge side)
{
	struct request *gone;
	bool front = side == ELEVATOR_FRONT_MERGE;

	if (front ? !ll_front_merge_fn(q, rq, bio) : !ll_back_merge_fn(q, rq, bio))
		return false;
	shim_side(side);
	if (front) {
		bio->bi_next = rq->bio;
		rq->bio = bio;
		rq->__sector = bio->bi_iter.bi_sector;
	} else {
		rq->biotail->bi_next = bio;
		rq->biotail = bio;
	}
	rq->__data_len += bio->bi_iter.bi_size;
	rq->ioprio = ioprio_best(rq->ioprio, bio_prio(bio));
	shim_joined(rq, bio);
	elv_bio_merged(q, rq, bio);
	gone = front ? attempt_front_merge(q, rq) : attempt_back_merge(q, rq);
	if (gone)
		__blk_put_request(q, gone);
	else
		elv_merged_request(q, rq, side);
	return true;
}

static bool sq_bio_merge(struct request_queue *q, struct bio *bio, unsigned int segments)
{
	struct request *rq = NULL;
	enum elv_merge side;
	bool joined;

	spin_lock_irq(q->queue_lock);
	side = elv_merge(q, &rq, bio);
	joined = (side == ELEVATOR_BACK_MERGE || side == ELEVATOR_FRONT_MERGE) && sq_join(q, rq, bio, side);
	spin_unlock_irq(q->queue_lock);
	return joined;
}

static void sq_insert(struct blk_mq_hw_ctx *hctx, struct list_head *list, bool at_head)
{
	struct request *rq = list_first_entry(list, struct request, queuelist);

	list_del_init(&rq->queuelist);
	rq->rq_flags |= RQF_ELVPRIV;
	sq_set_up(rq);
	spin_lock_irq(hctx->queue->queue_lock);
	__elv_add_request(hctx->queue, rq, at_head ? ELEVATOR_INSERT_FRONT : ELEVATOR_INSERT_SORT_MERGE);
	spin_unlock_irq(hctx->queue->queue_lock);
}

/* The first of those that the scheduler has sent. */
static struct request *sq_pull(struct request_queue *q)
{
	struct request *rq = list_first_entry_or_null(&q->queue_head, struct request, queuelist);

	if (!rq)
		return NULL;
	list_del_init(&rq->queuelist);
	rq->rq_flags |= RQF_STARTED;
	q->in_flight[rq_is_sync(rq)]++;
	return rq;
}

static struct request *sq_dispatch(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct request *rq = NULL;

	spin_lock_irq(q->queue_lock);
	if (!list_empty(&q->queue_head) || sq_ops(q)->elevator_dispatch_fn(q, 0))
		rq = sq_pull(q);
	spin_unlock_irq(q->queue_lock);
	return rq;
}

static bool sq_has_work(struct blk_mq_hw_ctx *hctx)
{
	return !list_empty(&hctx->queue->queue_head) || hctx->queue->nr_sorted;
}

static void sq_completed(struct request *rq, u64 now)
{
	spin_lock_irq(rq->q->queue_lock);
	elv_completed_request(rq->q, rq);
	spin_unlock_irq(rq->q->queue_lock);
}

/* It goes back to the driver's list, which is the caller's. */
static void sq_requeue(struct request *rq)
{
	spin_lock_irq(rq->q->queue_lock);
	elv_requeue_request(rq->q, rq);
	list_del_init(&rq->queuelist);
	rq->rq_flags |= RQF_STARTED;
	rq->q->in_flight[rq_is_sync(rq)]++;
	spin_unlock_irq(rq->q->queue_lock);
}

static void sq_finish(struct request *rq)
{
	spin_lock_irq(rq->q->queue_lock);
	elv_put_request(rq->q, rq);
	spin_unlock_irq(rq->q->queue_lock);
}

static void sq_exit_icq(struct io_cq *icq)
{
	spin_lock_irq(icq->q->queue_lock);
	atomic_set(&icq->ioc->active_ref, 0);
	if (sq_ops(icq->q)->elevator_exit_icq_fn)
		sq_ops(icq->q)->elevator_exit_icq_fn(icq);
	spin_unlock_irq(icq->q->queue_lock);
}

const struct shim_sq_ops shim_sq_ops = {
	.init_sched = sq_init,
	.exit_sched = sq_exit,
	.bio_merge = sq_bio_merge,
	.insert_requests = sq_insert,
	.dispatch_request = sq_dispatch,
	.has_work = sq_has_work,
	.completed_request = sq_completed,
	.requeue_request = sq_requeue,
	.finish_request = sq_finish,
	.exit_icq = sq_exit_icq,
};

/* Calls of the single-queue path alone. */
static void shim_run_single(struct shim_queue *s, struct shim_call *c, struct request *rq)
{
	struct request_queue *q = &s->q;

	switch (c->op) {
	case SHIM_SET_REQUEST:
		sq_set_up(rq);
		return;
	case SHIM_MAY_QUEUE:
		spin_lock_irq(q->queue_lock);
		c->found = elv_may_queue(q, c->io.opf) == ELV_MQUEUE_MUST;
		break;
	case SHIM_ACTIVATE:
		spin_lock_irq(q->queue_lock);
		if (!q->boundary_rq || q->boundary_rq == rq) {
			q->end_sector = rq_end_sector(rq);
			q->boundary_rq = NULL;
		}
		if ((rq->rq_flags & RQF_SORTED) && sq_ops(q)->elevator_activate_req_fn)
			sq_ops(q)->elevator_activate_req_fn(q, rq);
		break;
	case SHIM_DRAIN:
		/* All at first, then one after another. */
		spin_lock_irq(q->queue_lock);
		if (c->number)
			elv_drain_elevator(q);
		rq = sq_pull(q);
		c->found = rq != NULL;
		c->result = rq ? rq->shim_id : SHIM_NONE;
		break;
	default:
		BUG();
	}
	spin_unlock_irq(q->queue_lock);
}

#endif
