/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A multipath target by itself, which carries out the commands of blkmq's scripts
 * (crates/blkmq/tests/script/multipath.rs) and prints what they print.
 *
 * Work items, activations and timers wait for a command that runs them. Not here: the model's side
 * (src/differential/multipath.rs).
 */
#include "call.h"
#include "dm-path-selector.h"

#define WAYS 32
#define WORDS 256
/* Requests with clones, and bios that are held. */
#define MAPPED 2500

/* What becomes of the clones of a command. */
enum fate { ISSUED, NO_CLONE, DYING, UNDONE };

struct shim_mapped {
	struct list_head list;
	struct request clone;
	struct bio bio;
	union map_info info;
};
struct shim_device { struct dm_dev dev; struct block_device bdev; struct request_queue q; };
/* A path, with the name that the table has for it. */
struct shim_way {
	struct dm_dev **slot;
	const char *name;
	unsigned int activating;
	void (*done)(void *, int);
	void *data;
	/* Asked for by this command. */
	bool queued;
	unsigned long delay;
};

struct shim_parts {
	struct dm_target ti;
	struct dm_table table;
	struct shim_way way[WAYS];
	struct shim_device device[WAYS];
	unsigned int ways, devices, cpus, nodes, mapped;
	unsigned long timeout;
	bool is_bio, constructed;
	struct work_struct *queued[WAYS + 2];
	struct list_head in_flight;
	u64 now;
	struct cpumask of_node;
	struct shim_task *suspension;

	/* Of this command. */
	enum fate fate;
	struct shim_mapped *io;
	bool activates, run, kick, no_timer, wake, worker;
	unsigned long timer_secs;
	/* Until the state is shown. */
	const char *event, *event_path;
};

__thread struct shim_clock shim_clock;
__thread int shim_cpu, shim_cpus;
static __thread struct shim_part *part;
static __thread struct shim_parts *at;
static struct target_type *shim_target;
static struct path_selector_type *shim_selectors[8];

struct dm_path *shim_path_of(void *mpio);
struct work_struct *shim_activation_of(struct dm_path *path);
struct dm_path *shim_activated(void *data);
struct timer_list *shim_timer_of(struct dm_target *ti);
struct work_struct *shim_worker_of(struct dm_target *ti);
void shim_state_of(struct dm_target *ti);
size_t shim_mpio_bytes(void);
unsigned long *shim_param_queue_if_no_path_timeout_secs(void);
bool shim_task_begins(struct shim_task **task, void (*run)(void *), void *of);
bool shim_task_goes_on(struct shim_task *task);
void shim_task_sleeps(void);
int vsnprintf(char *out, size_t room, const char *format, __builtin_va_list arguments);
int shim_module_init_1(void), shim_module_init_2(void), shim_module_init_3(void), shim_module_init_4(void),
    shim_module_init_5(void);

/* Text. */
void shim_say(const char *format, ...)
{
	__builtin_va_list arguments;

	__builtin_va_start(arguments, format);
	part->out_used += vsnprintf(part->out + part->out_used, part->out_room - part->out_used, format, arguments);
	__builtin_va_end(arguments);
	BUG_ON(part->out_used >= part->out_room);
}
int shim_emit(char *out, int room, const char *format, ...)
{
	__builtin_va_list arguments;
	int bytes;

	__builtin_va_start(arguments, format);
	if (!strcmp(format, "%*pb ")) {
		int bits = __builtin_va_arg(arguments, int);

		BUG_ON(bits > 32);
		bytes = scnprintf(out, room, "%0*lx ", (bits + 3) / 4,
				  *__builtin_va_arg(arguments, unsigned long *) & (BIT(bits) - 1));
	} else {
		bytes = vsnprintf(out, room, format, arguments);
		BUG_ON(bytes >= room);
	}
	__builtin_va_end(arguments);
	return bytes;
}
char *kstrdup(const char *s, gfp_t gfp)
{
	char *copy = s ? kmalloc(strlen(s) + 1, gfp) : NULL;

	return copy ? memcpy(copy, s, strlen(s) + 1) : NULL;
}

/* CPUs. */
int cpumask_parse(const char *text, struct cpumask *m)
{
	char dummy;

	memset(m, 0, sizeof(*m));
	return sscanf(text, "%lx%c", &m->bits[0], &dummy) == 1 ? 0 : -EINVAL;
}
int cpu_to_node(int cpu) { return cpu * at->nodes / shim_cpus; }
const struct cpumask *cpumask_of_node(int node)
{
	int cpu;

	memset(&at->of_node, 0, sizeof(at->of_node));
	for (cpu = 0; cpu < shim_cpus; cpu++)
		if (cpu_to_node(cpu) == node)
			set_bit(cpu, at->of_node.bits);
	return &at->of_node;
}

/* Work and timers. */
struct workqueue_struct *shim_workqueue(void)
{
	static struct workqueue_struct all;

	return &all;
}
static struct work_struct **shim_queued(struct work_struct *work)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(at->queued); i++)
		if (at->queued[i] == work)
			return &at->queued[i];
	return NULL;
}
static bool shim_take_work(struct work_struct *work)
{
	struct work_struct **queued = shim_queued(work);

	if (queued)
		*queued = NULL;
	return queued;
}
static struct dm_path *shim_path(unsigned int i) { return container_of(at->way[i].slot, struct dm_path, dev); }
bool shim_queue_work(struct work_struct *work, unsigned long delay)
{
	unsigned int i;

	at->worker |= work == shim_worker_of(&at->ti);
	if (shim_queued(work))
		return false;
	*shim_queued(NULL) = work;
	for (i = 0; i < at->ways; i++)
		if (work == shim_activation_of(shim_path(i))) {
			at->way[i].queued = true;
			at->way[i].delay = delay;
		}
	return true;
}
void shim_flush_work(struct work_struct *work)
{
	if (shim_take_work(work))
		work->func(work);
}
void shim_timer_setup(void *timer) { }
int mod_timer(struct timer_list *t, unsigned long expires)
{
	at->timer_secs = (expires - jiffies) / HZ;
	at->no_timer = false;
	return 0;
}
int timer_delete_sync(struct timer_list *t)
{
	/* Where there is none, it is not said each time. */
	at->no_timer = at->timeout;
	at->timer_secs = 0;
	return 0;
}
void io_schedule(void) { shim_task_sleeps(); }
void shim_wake(void) { at->wake = true; }
void shim_lock_taken(const char *file, int line, const char *name) { }

/* Requests and bios. */
struct request *blk_mq_alloc_request(struct request_queue *q, blk_opf_t opf, unsigned int flags)
{
	BUG_ON(!(opf & REQ_NOMERGE) || flags != BLK_MQ_REQ_NOWAIT);
	q->dying = at->fate == DYING;
	if (at->fate == NO_CLONE || at->fate == DYING)
		return ERR_PTR(-EAGAIN);
	at->io->clone.cmd_flags = opf;
	return &at->io->clone;
}
void blk_mq_free_request(struct request *rq) { BUG_ON(rq != &at->io->clone); }
void *dm_per_bio_data(struct bio *bio, size_t bytes)
{
	BUG_ON(bytes != at->ti.per_io_data_size);
	return container_of(bio, struct shim_mapped, bio)->info.ptr;
}
u64 dm_start_time_ns_from_clone(struct bio *bio) { return container_of(bio, struct shim_mapped, bio)->clone.io_start_time_ns; }

/* Device-mapper. */
int dm_register_path_selector(struct path_selector_type *type)
{
	unsigned int i = 0;

	while (shim_selectors[i])
		i++;
	shim_selectors[i] = type;
	return 0;
}
struct path_selector_type *dm_get_path_selector(const char *name)
{
	unsigned int i;

	for (i = 0; name && shim_selectors[i]; i++)
		if (!strcmp(shim_selectors[i]->name, name))
			return shim_selectors[i];
	return NULL;
}
void dm_put_path_selector(struct path_selector_type *type) { }
int dm_register_target(struct target_type *type)
{
	shim_target = type;
	return shim_module_init_1() ?: shim_module_init_2() ?: shim_module_init_3() ?: shim_module_init_4() ?:
	       shim_module_init_5();
}
const char *shim_name(void) { return shim_target ? shim_target->name : NULL; }

const char *dm_shift_arg(struct dm_arg_set *set)
{
	if (!set->argc)
		return NULL;
	set->argc--;
	return *set->argv++;
}
void dm_consume_args(struct dm_arg_set *set, unsigned int count)
{
	BUG_ON(set->argc < count);
	set->argc -= count;
	set->argv += count;
}
int dm_read_arg(const struct dm_arg *arg, struct dm_arg_set *set, unsigned int *value, char **error)
{
	const char *text = dm_shift_arg(set);
	char dummy;

	if (text && sscanf(text, "%u%c", value, &dummy) == 1 && *value >= arg->min && *value <= arg->max)
		return 0;
	*error = arg->error;
	return -EINVAL;
}
int dm_read_arg_group(const struct dm_arg *arg, struct dm_arg_set *set, unsigned int *value, char **error)
{
	int r = dm_read_arg(arg, set, value, error);

	if (r || set->argc >= *value)
		return r;
	*error = arg->error;
	return -EINVAL;
}
static struct shim_device *shim_device(const char *path)
{
	const char *bare = strncmp(path, "/dev/", 5) ? path : path + 5;
	unsigned int i;

	for (i = 0; i < at->devices; i++)
		if (!strcmp(at->device[i].dev.name, bare))
			return &at->device[i];
	if (at->constructed)
		return NULL;
	BUG_ON(at->devices == WAYS);
	scnprintf(at->device[i].dev.name, sizeof(at->device[i].dev.name), "%s", bare);
	at->device[i].dev.bdev = &at->device[i].bdev;
	at->device[i].bdev.bd_queue = &at->device[i].q;
	at->device[i].bdev.bd_dev = i;
	at->devices++;
	return &at->device[i];
}
/* Of a path while the target is made; of a message later. */
int dm_get_device(struct dm_target *ti, const char *path, blk_mode_t mode, struct dm_dev **result)
{
	struct shim_device *device = shim_device(path);

	if (!device)
		return -ENODEV;
	*result = &device->dev;
	if (!at->constructed) {
		BUG_ON(at->ways == WAYS);
		at->way[at->ways].slot = result;
		at->way[at->ways++].name = kstrdup(path, GFP_KERNEL);
	}
	return 0;
}
int dm_devt_from_path(const char *path, dev_t *dev)
{
	struct shim_device *device = shim_device(path);

	if (!device)
		return -ENODEV;
	*dev = device->bdev.bd_dev;
	return 0;
}
void dm_table_run_md_queue_async(struct dm_table *t) { at->run = !at->is_bio; }
void dm_mq_kick_requeue_list(struct mapped_device *md) { at->kick = true; }

static unsigned int shim_way_of(struct dm_path *path)
{
	unsigned int i = 0;

	while (at->way[i].slot != &path->dev)
		BUG_ON(++i == at->ways);
	return i;
}
const char *shim_name_of(struct dm_path *path) { return at->way[shim_way_of(path)].name; }
int scsi_dh_activate(struct request_queue *q, void (*done)(void *, int), void *data)
{
	struct shim_way *way = &at->way[shim_way_of(shim_activated(data))];

	at->activates = true;
	way->activating++;
	way->done = done;
	way->data = data;
	return 0;
}
/* dm-uevent.h declares it with an enum, whose first value is of a path that has failed. */
void dm_path_uevent(int type, struct dm_target *ti, const char *path, unsigned int valid)
{
	at->event = type ? "reinstated" : "failed";
	at->event_path = path;
}

/* Commands. */
struct words { unsigned int count; char *word[WORDS], text[4096]; };

static void split(struct words *w, const char *text)
{
	char *to = w->text;

	BUG_ON(strlen(text) >= sizeof(w->text));
	for (w->count = 0; *text; ) {
		if (*text == ' ') {
			text++;
			continue;
		}
		BUG_ON(w->count == WORDS);
		w->word[w->count++] = to;
		while (*text && *text != ' ')
			*to++ = *text++;
		*to++ = 0;
	}
}
/* Bytes: 512, 4k, 2g. */
static u64 size_of(const char *text)
{
	char *unit;
	u64 value = simple_strtoull(text, &unit, 10);

	return *unit == 'g' ? value << 30 : *unit == 'm' ? value << 20 : *unit == 'k' ? value << 10 : value;
}
static bool setting(const char *word, const char *name, u64 *value)
{
	size_t length = strlen(name);

	if (strncmp(word, name, length) || word[length] != '=')
		return false;
	*value = simple_strtoull(word + length + 1, NULL, 10);
	return true;
}
static void refuse(void) { shim_say("?"); }
static struct shim_way *find_way(const char *name)
{
	unsigned int i;

	for (i = 0; name && i < at->ways; i++)
		if (!strcmp(at->way[i].name, name))
			return &at->way[i];
	return NULL;
}

/* Answers to one command: 8:0 x3, 8:16. */
struct answers { char last[64]; unsigned int times, runs; };
static void flush_answers(struct answers *a)
{
	if (!a->times)
		return;
	shim_say(a->runs++ ? ", %s" : "%s", a->last);
	if (a->times > 1)
		shim_say(" x%u", a->times);
}
static void add_answer(struct answers *a, const char *path, const char *what)
{
	char text[64];

	scnprintf(text, sizeof(text), "%s%s%s", path ?: "", path && what ? ": " : "", what ?: "");
	if (a->times && strcmp(text, a->last)) {
		flush_answers(a);
		a->times = 0;
	}
	memcpy(a->last, text, sizeof(text));
	a->times++;
}
static __thread struct answers answers;

static void free_io(struct shim_mapped *io)
{
	kfree(io->info.ptr);
	kfree(io);
	at->mapped--;
}
static void in_flight(struct shim_mapped *io)
{
	list_add_tail(&io->list, &at->in_flight);
	io->clone.io_start_time_ns = at->now;
}

/* Of the worker's bios. */
void submit_bio_noacct(struct bio *bio)
{
	struct shim_mapped *io = container_of(bio, struct shim_mapped, bio);

	in_flight(io);
	add_answer(&answers, shim_name_of(shim_path_of(io->info.ptr)), NULL);
}
void bio_endio(struct bio *bio)
{
	add_answer(&answers, NULL, bio->bi_status == BLK_STS_DM_REQUEUE ? "requeue" : "killed ioerr");
	free_io(container_of(bio, struct shim_mapped, bio));
}

static void map_one(unsigned int bytes)
{
	struct request rq = { .__data_len = bytes }, *clone = NULL;
	struct shim_mapped *io = kzalloc(sizeof(*io), GFP_KERNEL);
	struct dm_target *ti = &at->ti;
	struct dm_path *path;
	int r;

	at->io = io;
	at->mapped++;
	io->info.ptr = kzalloc(ti->per_io_data_size, GFP_KERNEL);
	io->bio.bi_iter.bi_size = bytes;
	if (at->is_bio)
		r = ti->type->map(ti, &io->bio);
	else
		r = ti->type->clone_and_map_rq(ti, &rq, &io->info, &clone);
	path = shim_path_of(io->info.ptr);
	switch (r) {
	case DM_MAPIO_REMAPPED:
		BUG_ON(!path || (clone && !(clone->cmd_flags & REQ_FAILFAST_TRANSPORT)));
		if (at->fate == UNDONE) {
			ti->type->release_clone_rq(clone, &io->info);
			break;
		}
		add_answer(&answers, shim_name_of(path), NULL);
		in_flight(io);
		return;
	case DM_MAPIO_SUBMITTED:
		BUG_ON(!at->is_bio);
		add_answer(&answers, NULL, "held");
		return;
	}
	add_answer(&answers, path ? shim_name_of(path) : NULL,
		   r == DM_MAPIO_REMAPPED ? "given up" : r == DM_MAPIO_KILL ? "killed ioerr" :
		   r == DM_MAPIO_REQUEUE ? "requeue" : "delay");
	free_io(io);
}

static void map(struct words *w)
{
	static const char *const fates[] = { "", "noclone", "dying", "undone" };
	u64 bytes = 4096, times = 1, cpu = 0;
	unsigned int i, fate;

	for (i = 1; i < w->count; i++) {
		if (setting(w->word[i], "times", &times) || setting(w->word[i], "cpu", &cpu))
			continue;
		for (fate = NO_CLONE; fate <= UNDONE && strcmp(w->word[i], fates[fate]); fate++)
			;
		if (fate <= UNDONE)
			at->fate = fate;
		else
			bytes = size_of(w->word[i]);
	}
	if (bytes > U32_MAX || !times || times + at->mapped > MAPPED || cpu >= shim_cpus
	    || (at->is_bio && at->fate)) {
		refuse();
		return;
	}
	shim_cpu = cpu;
	while (times--)
		map_one(bytes);
}

static const struct { const char *name; int value; } statuses[] = {
	{ "ok", BLK_STS_OK }, { "ioerr", BLK_STS_IOERR }, { "timeout", BLK_STS_TIMEOUT }, { "again", BLK_STS_AGAIN },
	{ "notsupp", BLK_STS_NOTSUPP }, { "resource", BLK_STS_RESOURCE }, { "transport", BLK_STS_TRANSPORT },
	{ "target", BLK_STS_TARGET }, { "nexus", BLK_STS_NEXUS }, { "medium", BLK_STS_MEDIUM },
	{ "protection", BLK_STS_PROTECTION }, { "nospc", BLK_STS_NOSPC },
}, results[] = {
	{ "ok", SCSI_DH_OK }, { "nosys", SCSI_DH_NOSYS }, { "dev_temp_busy", SCSI_DH_DEV_TEMP_BUSY },
	{ "retry", SCSI_DH_RETRY }, { "imm_retry", SCSI_DH_IMM_RETRY }, { "res_temp_unavail", SCSI_DH_RES_TEMP_UNAVAIL },
	{ "dev_offlined", SCSI_DH_DEV_OFFLINED }, { "io", SCSI_DH_IO },
};

static void end_one(struct shim_mapped *io, blk_status_t status)
{
	char text[32];
	int i, r;

	list_del(&io->list);
	if (at->is_bio)
		r = at->ti.type->end_io(&at->ti, &io->bio, &status);
	else
		r = at->ti.type->rq_end_io(&at->ti, &io->clone, status, &io->info);
	for (i = 0; statuses[i].value != status; i++)
		;
	scnprintf(text, sizeof(text), status ? "done %s" : "done", statuses[i].name);
	add_answer(&answers, NULL, r == DM_ENDIO_DONE ? text : r == DM_ENDIO_REQUEUE ? "requeue" :
		   r == DM_ENDIO_INCOMPLETE ? "held" : "delay");
	if (r != DM_ENDIO_INCOMPLETE)
		free_io(io);
}

static void end(struct words *w)
{
	struct shim_way *way = find_way(w->count > 1 ? w->word[1] : NULL);
	unsigned int i, j, status = BLK_STS_OK, there = 0;
	struct shim_mapped *io, *next;
	u64 times = 1;

	for (i = 2; i < w->count; i++) {
		if (setting(w->word[i], "times", &times))
			continue;
		for (j = 0; j < ARRAY_SIZE(statuses) && strcmp(statuses[j].name, w->word[i]); j++)
			;
		if (j == ARRAY_SIZE(statuses))
			way = NULL;
		else
			status = statuses[j].value;
	}
	list_for_each_entry(io, &at->in_flight, list)
		there += way && &shim_path_of(io->info.ptr)->dev == way->slot;
	if (!times || times > there) {
		refuse();
		return;
	}
	list_for_each_entry_safe(io, next, &at->in_flight, list)
		if (times && &shim_path_of(io->info.ptr)->dev == way->slot) {
			times--;
			end_one(io, status);
		}
}

static void work(struct words *w)
{
	struct shim_way *way = find_way(w->count == 2 ? w->word[1] : NULL);
	struct work_struct *item = way ? shim_activation_of(shim_path(way - at->way)) : NULL;

	if (!item || !shim_take_work(item)) {
		refuse();
		return;
	}
	item->func(item);
	shim_say("%s %s\n", way->name, at->activates ? "activates" : "is offline");
}

static void init(struct words *w)
{
	struct shim_way *way = find_way(w->count == 3 ? w->word[1] : NULL);
	unsigned int i;

	for (i = 0; way && i < ARRAY_SIZE(results); i++)
		if (way->activating && !strcmp(results[i].name, w->word[2])) {
			way->activating--;
			way->done(way->data, results[i].value);
			return;
		}
	refuse();
}

static void busy(struct words *w)
{
	unsigned int i, j;

	for (i = 0; i < at->devices; i++) {
		at->device[i].q.busy = false;
		for (j = 1; j < w->count; j++)
			at->device[i].q.busy |= shim_device(w->word[j]) == &at->device[i];
	}
	shim_say(at->ti.type->busy(&at->ti) ? "yes\n" : "no\n");
}

static void postsuspend(void *target)
{
	struct dm_target *ti = target;

	ti->type->postsuspend(ti);
}
/* multipath_postsuspend() from its begin, or from where it waits. */
static void stop(bool begins)
{
	if (begins != !at->suspension || shim_queued(shim_worker_of(&at->ti))) {
		refuse();
		return;
	}
	if (begins ? shim_task_begins(&at->suspension, postsuspend, &at->ti) : shim_task_goes_on(at->suspension))
		at->suspension = NULL;
	if (begins)
		shim_say(at->suspension ? "waits\n" : "goes on\n");
	else if (at->suspension)
		refuse();
}

static void show(status_type_t type)
{
	char *text = part->out + part->out_used;

	at->ti.type->status(&at->ti, type, 0, text, part->out_room - part->out_used);
	part->out_used += strlen(text);
	while (part->out_used && part->out[part->out_used - 1] == ' ')
		part->out_used--;
	shim_say("\n");
}
static void state(void)
{
	shim_state_of(&at->ti);
	if (at->event)
		shim_say("uevent: %s %s\n", at->event, at->event_path);
	at->event = NULL;
}

/* multipath_ctr() with the words of a table after those of the target's place, which begin at FIRST. */
static int construct(struct shim_parts *s, struct words *w, unsigned int first)
{
	int r;

	at = s;
	if (w->count < first + 3 || strcmp(w->word[first], "0") || !simple_strtoull(w->word[first + 1], NULL, 10)
	    || strcmp(w->word[first + 2], "multipath"))
		return -EINVAL;
	first += 3;
	s->ti.table = &s->table;
	s->ti.type = shim_target;
	INIT_LIST_HEAD(&s->in_flight);
	r = s->ti.type->ctr(&s->ti, w->count - first, w->word + first);
	s->constructed = true;
	s->is_bio = s->ti.per_io_data_size > shim_mpio_bytes();
	return r;
}
/* Another target, for its table alone. */
static void table(struct words *w)
{
	struct shim_parts *s = at, *tried = kzalloc(sizeof(*tried), GFP_KERNEL);

	tried->nodes = 1;
	if (construct(tried, w, 1)) {
		shim_say("refused\n");
	} else {
		show(STATUSTYPE_TABLE);
		tried->ti.type->dtr(&tried->ti);
	}
	at = s;
	while (tried->ways--)
		kfree(tried->way[tried->ways].name);
	kfree(tried);
}

static void pass_time(const char *span)
{
	char *unit;
	u64 ns = simple_strtoull(span, &unit, 10);

	if (unit == span || !*unit)
		refuse();
	else
		at->now += !strcmp(unit, "s") ? ns * NSEC_PER_SEC : !strcmp(unit, "ms") ? ns * NSEC_PER_MSEC :
			   !strcmp(unit, "us") ? ns * NSEC_PER_USEC : ns;
}

static void command(struct words *w)
{
	struct dm_target *ti = &at->ti;
	const char *what = w->count ? w->word[0] : "";
	struct mapped_device *md = &at->table.md;

	if (!strcmp(what, "map")) {
		map(w);
	} else if (!strcmp(what, "end")) {
		end(w);
	} else if (!strcmp(what, "message")) {
		/* It waits for a suspension. */
		if (at->suspension)
			refuse();
		else if (ti->type->message(ti, w->count - 1, w->word + 1, NULL, 0))
			shim_say("refused\n");
	} else if (!strcmp(what, "suspend")) {
		md->noflush = w->count > 1;
		ti->type->presuspend(ti);
	} else if (!strcmp(what, "suspended")) {
		md->noflush = false;
		md->suspended = true;
	} else if (!strcmp(what, "resume")) {
		md->suspended = false;
		ti->type->resume(ti);
	} else if (!strcmp(what, "work")) {
		work(w);
	} else if (!strcmp(what, "init")) {
		init(w);
	} else if (!strcmp(what, "stop")) {
		stop(true);
	} else if (!strcmp(what, "start")) {
		stop(false);
	} else if (!strcmp(what, "expire")) {
		shim_timer_of(ti)->function(shim_timer_of(ti));
	} else if (!strcmp(what, "busy")) {
		busy(w);
	} else if (!strcmp(what, "worker")) {
		if (shim_queued(shim_worker_of(ti)))
			shim_flush_work(shim_worker_of(ti));
		else
			refuse();
	} else if (!strcmp(what, "status")) {
		show(STATUSTYPE_INFO);
	} else if (!strcmp(what, "state")) {
		state();
	} else if (!strcmp(what, "table")) {
		table(w);
	} else if (!strcmp(what, "wait")) {
		pass_time(w->count > 1 ? w->word[1] : "");
	} else {
		refuse();
	}
}

void shim_part(struct shim_parts *s, struct shim_part *call)
{
	struct words w;
	unsigned int i;

	part = call;
	at = s;
	shim_cpu = 0;
	shim_cpus = s->cpus;
	shim_clock = (struct shim_clock){ s->now / (NSEC_PER_SEC / HZ), s->now, 0 };
	*shim_param_queue_if_no_path_timeout_secs() = s->timeout;
	s->fate = ISSUED;
	s->activates = s->run = s->kick = s->no_timer = s->wake = s->worker = false;
	s->timer_secs = 0;
	memset(&answers, 0, sizeof(answers));
	split(&w, call->text);
	command(&w);
	flush_answers(&answers);
	if (answers.runs)
		shim_say("\n");
	for (i = 0; i < s->devices; i++)
		s->device[i].q.dying = false;
	for (i = 0; i < s->ways; i++) {
		if (s->way[i].queued)
			shim_say(s->way[i].delay ? "queue work of %s after %ums\n" : "queue work of %s\n",
				 s->way[i].name, jiffies_to_msecs(s->way[i].delay));
		s->way[i].queued = false;
	}
	if (s->run)
		shim_say("run queue\n");
	if (s->kick)
		shim_say("kick list\n");
	if (s->worker)
		shim_say("call worker\n");
	if (s->no_timer)
		shim_say("no timer\n");
	if (s->wake)
		shim_say("wake\n");
	if (s->timer_secs)
		shim_say("timer in %lus\n", s->timer_secs);
}

/* The first line of a script. */
struct shim_parts *shim_open_part(const struct shim_part *call)
{
	struct shim_parts *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u64 cpus = 4, nodes = 1, timeout = 0;
	unsigned int i = 1;
	struct words w;

	split(&w, call->text);
	while (i < w.count && strchr(w.word[i], '=')) {
		if (!setting(w.word[i], "cpus", &cpus) && !setting(w.word[i], "nodes", &nodes))
			setting(w.word[i], "timeout", &timeout);
		i++;
	}
	shim_cpus = s->cpus = cpus;
	s->nodes = nodes;
	s->timeout = timeout;
	*shim_param_queue_if_no_path_timeout_secs() = timeout;
	if (construct(s, &w, i))
		shim_bug("multipath", 0, "the target refuses its table");
	return s;
}
