/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What of a queue's arrays is state, for copies (host.c) and for what makes states of the explorer the same. Part
 * of shim.c.
 */
void shim_arrays(struct shim_queue *s, struct shim_extent *arrays)
{
	arrays[0] = (struct shim_extent){ s->rqs, s->rqs_used * sizeof(*s->rqs) };
	arrays[1] = (struct shim_extent){ s->bios, s->bios_used * sizeof(*s->bios) };
	arrays[2] = (struct shim_extent){ s->tasks, s->tasks_used * sizeof(*s->tasks) };
}

/* The scheduler has counted a request of a level that has ended. */
static void shim_counts_end(struct shim_ends *ends, u32 *count)
{
	unsigned int i;

	for (i = 0; i < ends->count; i++)
		if (ends->at[i] == count)
			return;
	if (ends->count < SHIM_LEVELS)
		ends->at[ends->count++] = count;
}

/*
 * The heap without counts of ended requests: the caller's own counts are the state, and the scheduler gets them
 * when it needs them. Then the requests that the scheduler has, which are on a list, and their bios. Of the others
 * a scheduler that is called for their ends may know anything; another one has but its mark in them, in case they
 * come back.
 */
void shim_print_queue(struct shim_queue *s, struct shim_print *print, struct shim_extent heap)
{
	const struct elevator_mq_ops *ops = &s->q.elevator->type->ops;
	struct shim_ends ends = s->ends;
	u32 counts[SHIM_LEVELS];
	unsigned int i;

	for (i = 0; i < ends.count; i++) {
		counts[i] = *ends.at[i];
		*ends.at[i] = 0;
	}
	s->ends = (struct shim_ends){ 0 };
	shim_print_bytes(print, heap.from, heap.bytes);
	s->ends = ends;
	for (i = 0; i < ends.count; i++)
		*ends.at[i] = counts[i];
	for (i = 0; i < s->rqs_used; i++) {
		struct request *rq = &s->rqs[i];
		unsigned long flags = rq->rq_flags;
		struct bio *bio;
		bool queued;

		if (!rq->q)
			continue;
		queued = !list_empty(&rq->queuelist);
		if (queued || ops->completed_request) {
			shim_print_bytes(print, rq, sizeof(*rq));
		} else {
			shim_print_bytes(print, &flags, sizeof(flags));
			shim_print_bytes(print, &rq->elv, sizeof(rq->elv));
		}
		for (bio = queued ? rq->bio : NULL; bio; bio = bio->bi_next)
			shim_print_bytes(print, bio, sizeof(*bio));
	}
	shim_print_bytes(print, s->tasks, s->tasks_used * sizeof(*s->tasks));
}
