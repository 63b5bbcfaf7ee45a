// SPDX-License-Identifier: GPL-2.0-only
/*
 * script FILE: processes that do one thing at a time, as a script says.
 *
 * A line is a process (one word; it is started when first named) and what it does:
 *   NAME read DEV SECTOR KIB  one read(2), O_DIRECT; the next line does not wait for it
 *   NAME reads DEV SECTOR KIB STEP MS  such reads for MS, each STEP sectors after the last, within 512 MiB; prints how many
 *   NAME group PATH           moves itself to the cgroup
 *   NAME exit                 ends
 * and, of the script itself:
 *   wait NAME...              until those have done all they were told (no name: all)
 *   sleep MS
 *   sh COMMAND                runs it and waits
 * A line that starts with # is printed with the time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 64

struct process {
	char name[16];
	pid_t pid;
	int orders, answers;	/* pipes */
	int pending;
};

static struct process process[PROCESSES];
static int processes;

static void fail(const char *what)
{
	fprintf(stderr, "script: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void do_reads(const char *dev, long sector, long kib, long step, long ms)
{
	long at = 0, count = 0;
	double end = now() + ms / 1e3;
	void *buf;
	int fd = open(dev, O_RDONLY | O_DIRECT);

	if (fd < 0)
		fail(dev);
	if (posix_memalign(&buf, 4096, kib << 10))
		fail("posix_memalign");
	do {
		if (pread(fd, buf, kib << 10, (sector + at) << 9) != kib << 10)
			fail("pread");
		at = (at + step) % (1 << 20);
		count++;
	} while (now() < end);
	if (ms)
		printf("   %ld reads from %ld on\n", count, sector), fflush(stdout);
	free(buf);
	close(fd);
}

static void join_group(const char *path)
{
	char name[256];
	int fd;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	fd = open(name, O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		fail(name);
	close(fd);
}

/* One order is a line of at most 255 bytes; one byte answers it. */
static void serve(int orders, int answers)
{
	char line[256], arg[200];
	long sector, kib, step, ms;

	while (read(orders, line, sizeof(line)) == sizeof(line)) {
		if (sscanf(line, "read %199s %ld %ld", arg, &sector, &kib) == 3)
			do_reads(arg, sector, kib, 0, 0);
		else if (sscanf(line, "reads %199s %ld %ld %ld %ld", arg, &sector, &kib, &step, &ms) == 5)
			do_reads(arg, sector, kib, step, ms);
		else if (sscanf(line, "group %199s", arg) == 1)
			join_group(arg);
		else if (!strncmp(line, "exit", 4))
			break;
		else
			fprintf(stderr, "script: what is \"%s\"?\n", line), exit(1);
		if (write(answers, "", 1) != 1)
			fail("answer");
	}
	_exit(0);	/* exit(3) would seek in the script, which all share */
}

static struct process *find(const char *name)
{
	int i, orders[2], answers[2];
	struct process *p;

	for (i = 0; i < processes; i++)
		if (!strcmp(process[i].name, name))
			return &process[i];
	if (processes == PROCESSES || strlen(name) >= sizeof(p->name))
		fail("too many processes, or a long name");
	p = &process[processes++];
	strcpy(p->name, name);
	if (pipe2(orders, O_CLOEXEC) || pipe2(answers, O_CLOEXEC))
		fail("pipe");
	fflush(NULL);
	p->pid = fork();
	if (!p->pid) {
		close(orders[1]);
		close(answers[0]);
		serve(orders[0], answers[1]);
	}
	close(orders[0]);
	close(answers[1]);
	p->orders = orders[1];
	p->answers = answers[0];
	return p;
}

static void finish(struct process *p)
{
	char c;

	for (; p->pending; p->pending--)
		if (read(p->answers, &c, 1) != 1)
			fail(p->name);
}

/* Its copies of the other pipes would keep a process waiting for the end of file: so it is told. */
static void end(struct process *p)
{
	char order[256] = "exit";

	finish(p);
	if (write(p->orders, order, sizeof(order)) != sizeof(order))
		fail(p->name);
	close(p->orders);
	close(p->answers);
	waitpid(p->pid, NULL, 0);
	*p = process[--processes];
}

int main(int argc, char **argv)
{
	char line[256], order[256], name[16], *rest, *word;
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
	struct process *p;
	int i;

	if (!f)
		fail("usage: script FILE");
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!*line)
			continue;
		if (*line == '#') {
			printf("%10.6f %s\n", now(), line);
			continue;
		}
		rest = strchr(line, ' ');
		rest = rest ? rest + 1 : line + strlen(line);
		if (sscanf(line, "%15s", name) != 1)
			continue;
		if (!strcmp(name, "sleep")) {
			usleep(atol(rest) * 1000);
		} else if (!strcmp(name, "sh")) {
			fflush(NULL);
			if (system(rest))
				fprintf(stderr, "script: failed: %s\n", rest);
		} else if (!strcmp(name, "wait")) {
			if (!*rest)
				for (i = 0; i < processes; i++)
					finish(&process[i]);
			for (word = strtok(rest, " "); word; word = strtok(NULL, " "))
				finish(find(word));
		} else if (!strcmp(rest, "exit")) {
			end(find(name));
		} else {
			p = find(name);
			memset(order, 0, sizeof(order));
			snprintf(order, sizeof(order), "%s", rest);
			if (write(p->orders, order, sizeof(order)) != sizeof(order))
				fail(name);
			p->pending++;
		}
	}
	while (processes)
		end(&process[0]);
	return 0;
}
