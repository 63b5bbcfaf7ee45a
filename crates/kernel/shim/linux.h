/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a block scheduler of the kernel uses of the rest of the kernel, in user space: types, lists,
 * locks that check, clocks that the caller moves, memory from one arena.
 *
 * Included before each C file of a kernel tree; the headers that such a file names are empty, but for
 * those in tree.rs. Written from the documentation of these interfaces. Not here: the block layer (block.h).
 */
#ifndef SHIM_LINUX_H
#define SHIM_LINUX_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef u8 __u8, uint8_t;
typedef u16 __u16, uint16_t;
typedef u32 __u32, uint32_t;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef unsigned long uint64_t, size_t, uintptr_t, sector_t, blkcnt_t;
typedef unsigned int uint, gfp_t, fmode_t, slab_flags_t, fop_flags_t;
typedef long ssize_t, loff_t;
typedef u64 phys_addr_t, dma_addr_t;
typedef int pid_t;
typedef u16 umode_t;
typedef u32 __be32, dev_t, __le32;
typedef _Bool bool;
typedef s64 ktime_t;
typedef struct { int counter; } atomic_t;
typedef struct { long counter; } atomic_long_t;
typedef struct { s64 counter; } atomic64_t;
typedef struct { atomic_t refs; } refcount_t;

#define true 1
#define false 0
#define NULL ((void *)0)
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define ULONG_MAX 18446744073709551615UL
#define U16_MAX 65535
#define U32_MAX 4294967295U
#define S64_MAX 9223372036854775807LL
#define U64_MAX 18446744073709551615ULL
#define BITS_PER_LONG 64
#define BITS_PER_BYTE 8

/* What the compiler or a checker of the kernel would make of these words. */
#define __init
#define __exit
#define __initdata
#define __user
#define __force
#define __rcu
#define __percpu
#define __bitwise
#define __packed __attribute__((packed))
#define __always_inline inline __attribute__((always_inline))
#define noinline __attribute__((noinline))
#define __maybe_unused __attribute__((unused))
#define __must_check
#define __cold
#define __read_mostly
#define __ro_after_init
#define __randomize_layout
#define __private
#define __printf(a, b)
#define __acquires(x)
#define __releases(x)
#define __must_hold(x)
#define __cacheline_aligned_in_smp
#define ____cacheline_aligned_in_smp __attribute__((aligned(64)))
#define ____cacheline_aligned __attribute__((aligned(64)))
#define __data_racy
#define __counted_by(x)
#define fallthrough __attribute__((fallthrough))
#define likely(x) (x)
#define unlikely(x) (x)
#define barrier() __asm__ __volatile__("" ::: "memory")
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define smp_mb__after_atomic() barrier()
#define smp_mb__before_atomic() barrier()
#define cpu_relax() barrier()
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define data_race(x) (x)
#define smp_load_acquire(p) (*(p))
#define smp_store_release(p, v) (*(p) = (v))
#define rcu_dereference(p) (p)
#define rcu_dereference_raw(p) (p)
#define rcu_dereference_protected(p, c) (p)
#define rcu_dereference_check(p, c) (p)
#define rcu_access_pointer(p) (p)
#define rcu_assign_pointer(p, v) ((p) = (v))
#define RCU_INIT_POINTER(p, v) ((p) = (v))
#define rcu_read_lock() do { } while (0)
#define rcu_read_unlock() do { } while (0)
#define __same_type(a, b) __builtin_types_compatible_p(typeof(a), typeof(b))
#define BUILD_BUG_ON(x) ((void)sizeof(char[1 - 2 * !!(x)]))
#define BUILD_BUG_ON_INVALID(x) ((void)sizeof((long)(x)))
#define static_assert _Static_assert
#define EXPORT_SYMBOL(x) extern int shim_exported
#define EXPORT_SYMBOL_GPL(x) extern int shim_exported
#define IS_ENABLED(x) 0
#define IS_REACHABLE(x) 0
#define IS_BUILTIN(x) 0
#define THIS_MODULE ((struct module *)0)
#define MODULE_ALIAS(x) extern int shim_exported
#define MODULE_AUTHOR(x) extern int shim_exported
#define MODULE_LICENSE(x) extern int shim_exported
#define MODULE_DESCRIPTION(x) extern int shim_exported
#define MODULE_PARM_DESC(x, y) extern int shim_exported
#define module_param_named(a, b, c, d) extern int shim_exported
#define module_param(a, b, c) extern int shim_exported
/* Each C file is a module of its own, with the number of the file in its name. */
#define SHIM_PASTE2(a, b) a##b
#define SHIM_PASTE(a, b) SHIM_PASTE2(a, b)
#define module_init(f) int SHIM_PASTE(shim_module_init_, SHIM_FILE)(void) { return f(); }
#define module_exit(f) void SHIM_PASTE(shim_module_exit_, SHIM_FILE)(void) { f(); }
#define __setup(name, f) extern int shim_exported
#define subsys_initcall(f) extern int shim_exported
#define late_initcall(f) extern int shim_exported
struct module;
static inline bool try_module_get(struct module *m) { return true; }
static inline void __module_get(struct module *m) { }
static inline void module_put(struct module *m) { }

/* The end of the run: the text, with the call of the scheduler that led here. */
_Noreturn void shim_bug(const char *file, int line, const char *what);
#define BUG() shim_bug(__FILE__, __LINE__, "BUG()")
#define BUG_ON(x) do { if (x) shim_bug(__FILE__, __LINE__, "BUG_ON(" #x ")"); } while (0)
#define panic(...) shim_bug(__FILE__, __LINE__, "panic()")
void shim_warn(const char *file, int line, const char *what);
#define WARN_ON(x) ({ bool shim_w = !!(x); if (shim_w) shim_warn(__FILE__, __LINE__, "WARN_ON(" #x ")"); shim_w; })
#define WARN_ON_ONCE(x) WARN_ON(x)
#define WARN(x, ...) WARN_ON(x)
#define WARN_ONCE(x, ...) WARN_ON(x)
#define lockdep_assert_held(l) BUG_ON(!(l)->held)
#define lockdep_assert(x) BUG_ON(!(x))
#define lockdep_is_held(l) ((l)->held)
#define pr_warn(...) do { } while (0)
#define pr_info(...) do { } while (0)
#define pr_debug(...) do { } while (0)
#define pr_err(...) do { } while (0)
#define pr_crit(...) do { } while (0)
#define pr_info_once(...) do { } while (0)
#define printk(...) do { } while (0)
#define KERN_ERR ""
#define KERN_INFO ""
#define might_sleep() do { } while (0)
#define cond_resched() do { } while (0)
#define dump_stack() do { } while (0)

/* Arithmetic. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - __builtin_offsetof(type, member)))
#define container_of_const(ptr, type, member) container_of(ptr, type, member)
#define offsetof(type, member) __builtin_offsetof(type, member)
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define min(a, b) ({ typeof(a) shim_a = (a); typeof(b) shim_b = (b); shim_a < shim_b ? shim_a : shim_b; })
#define max(a, b) ({ typeof(a) shim_a = (a); typeof(b) shim_b = (b); shim_a > shim_b ? shim_a : shim_b; })
#define min_t(t, a, b) ({ t shim_a = (a); t shim_b = (b); shim_a < shim_b ? shim_a : shim_b; })
#define max_t(t, a, b) ({ t shim_a = (a); t shim_b = (b); shim_a > shim_b ? shim_a : shim_b; })
#define max3(a, b, c) max(max(a, b), c)
#define clamp(v, lo, hi) min((typeof(v))max(v, lo), hi)
#define clamp_t(t, v, lo, hi) min_t(t, max_t(t, v, lo), hi)
#define clamp_val(v, lo, hi) clamp_t(typeof(v), v, lo, hi)
#define min_not_zero(a, b) ({ typeof(a) shim_p = (a); typeof(b) shim_q = (b); \
	shim_p == 0 ? shim_q : (shim_q == 0 ? shim_p : min(shim_p, shim_q)); })
#define swap(a, b) do { typeof(a) shim_t = (a); (a) = (b); (b) = shim_t; } while (0)
/* Of a difference of unsigned numbers, too. */
#define abs(x) ({ long shim_s = sizeof(x) > 4 ? (long)(x) : (int)(x); shim_s < 0 ? -shim_s : shim_s; })
/* Of numbers that are not negative. */
#define DIV_ROUND_CLOSEST(n, d) ({ typeof(n) shim_n = (n); typeof(d) shim_d = (d); (shim_n + shim_d / 2) / shim_d; })
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define round_up(x, y) ((((x) - 1) | ((typeof(x))((y) - 1))) + 1)
#define round_down(x, y) ((x) & ~((typeof(x))((y) - 1)))
#define roundup(x, y) (DIV_ROUND_UP(x, y) * (y))
#define ALIGN_DOWN(x, a) round_down(x, a)
#define ALIGN(x, a) round_up(x, a)
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define lower_32_bits(x) ((u32)(x))
#define div_u64(a, b) ((u64)(a) / (u32)(b))
#define div64_u64(a, b) ((u64)(a) / (u64)(b))
#define div64_ul(a, b) ((u64)(a) / (unsigned long)(b))
#define div_s64(a, b) ((s64)(a) / (s32)(b))
#define do_div(n, b) ({ u32 shim_d = (b); u32 shim_r = (u64)(n) % shim_d; (n) = (u64)(n) / shim_d; shim_r; })
#define sector_div(n, b) do_div(n, b)
#define is_power_of_2(n) ((n) != 0 && ((n) & ((n) - 1)) == 0)
static inline int fls(unsigned int x) { return x ? 32 - __builtin_clz(x) : 0; }
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int ffs(int x) { return __builtin_ffs(x); }
static inline unsigned long __ffs(unsigned long x) { return __builtin_ctzl(x); }
static inline unsigned long __fls(unsigned long x) { return 63 - __builtin_clzl(x); }
#define ilog2(n) (fls64(n) - 1)
#define hweight_long(x) __builtin_popcountl(x)
#define bitmap_weight(p, bits) hweight_long(*(p) & (~0UL >> (BITS_PER_LONG - (bits))))
#define hweight32(x) __builtin_popcount(x)
#define GOLDEN_RATIO_32 0x61C88647
#define GOLDEN_RATIO_64 0x61C8864680B583EBull
static inline u32 hash_32(u32 v, unsigned int bits) { return (v * GOLDEN_RATIO_32) >> (32 - bits); }
static inline u32 hash_64(u64 v, unsigned int bits) { return v * GOLDEN_RATIO_64 >> (64 - bits); }
#define hash_long(v, bits) hash_64(v, bits)
#define hash_min(v, bits) (sizeof(v) <= 4 ? hash_32(v, bits) : hash_64(v, bits))

void *memset(void *s, int c, size_t n);
void *memcpy(void *d, const void *s, size_t n);
void *memmove(void *d, const void *s, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
int sprintf(char *page, const char *format, ...);
int snprintf(char *page, size_t size, const char *format, ...);
int scnprintf(char *page, size_t size, const char *format, ...);
int sysfs_emit(char *page, const char *format, ...);
int sscanf(const char *text, const char *format, ...);
char *strim(char *s);
char *strstrip(char *s);
int kstrtoint(const char *text, unsigned int base, int *value);
int kstrtouint(const char *text, unsigned int base, unsigned int *value);
int kstrtoul(const char *text, unsigned int base, unsigned long *value);
unsigned long long simple_strtoull(const char *text, char **end, unsigned int base);
int kstrtoull(const char *text, unsigned int base, unsigned long long *value);

/* Errors. */
#define EPERM 1
#define ENOENT 2
#define EIO 5
#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EEXIST 17
#define ENODEV 19
#define EINVAL 22
#define ERANGE 34
#define ENODATA 61
#define EOPNOTSUPP 95
#define ETIMEDOUT 110
#define EREMOTEIO 121
static inline void *ERR_PTR(long e) { return (void *)e; }
static inline long PTR_ERR(const void *p) { return (long)p; }
static inline bool IS_ERR(const void *p) { return (unsigned long)p >= (unsigned long)-4095; }
static inline bool IS_ERR_OR_NULL(const void *p) { return !p || IS_ERR(p); }

/* Memory: from the arena of the queue that is being called. */
void *shim_alloc(size_t bytes, gfp_t gfp);
void shim_free(const void *p);
#define GFP_KERNEL 0
#define GFP_ATOMIC 0
#define GFP_NOWAIT 0
#define GFP_NOIO 0
#define __GFP_ZERO 1
#define __GFP_NOWARN 0
#define __GFP_NORETRY 0
#define __GFP_NOMEMALLOC 0
#define kmalloc(n, gfp) shim_alloc(n, gfp)
#define kzalloc(n, gfp) shim_alloc(n, (gfp) | __GFP_ZERO)
#define kmalloc_node(n, gfp, node) kmalloc(n, gfp)
#define kzalloc_node(n, gfp, node) kzalloc(n, gfp)
#define kcalloc_node(n, size, gfp, node) kzalloc((n) * (size), gfp)
#define kmalloc_array_node(n, size, gfp, node) kmalloc((n) * (size), gfp)
#define kmalloc_array(n, size, gfp) kmalloc((n) * (size), gfp)
#define kcalloc(n, size, gfp) kzalloc((n) * (size), gfp)
#define kmalloc_obj(of, ...) ((typeof(of) *)kmalloc(sizeof(of), GFP_KERNEL))
#define kzalloc_obj(of, ...) ((typeof(of) *)kzalloc(sizeof(of), GFP_KERNEL))
#define kmalloc_objs(of, n, ...) ((typeof(of) *)kmalloc((n) * sizeof(of), GFP_KERNEL))
#define kzalloc_objs(of, n, ...) ((typeof(of) *)kzalloc((n) * sizeof(of), GFP_KERNEL))
#define kvzalloc_node(n, gfp, node) kzalloc(n, gfp)
#define kvfree(p) shim_free(p)
#define kfree(p) shim_free(p)
struct kmem_cache { size_t bytes; };
/* Objects of a cache have numbers in the order of their allocation, which messages show for their addresses. */
void *shim_alloc_numbered(size_t bytes, gfp_t gfp);
void shim_free_numbered(void *p);
#define KMEM_CACHE(s, flags) ({ static struct kmem_cache shim_cache = { sizeof(struct s) }; &shim_cache; })
#define kmem_cache_destroy(c) do { } while (0)
#define kmem_cache_alloc_node(c, gfp, node) shim_alloc_numbered((c)->bytes, gfp)
#define kmem_cache_free(c, p) shim_free_numbered(p)
#define NUMA_NO_NODE (-1)

/* Locks: no other CPU runs, so a lock is a flag; a second acquisition or a lost one is a bug of the file. */
typedef struct shim_lock { int held; const char *name; } spinlock_t, raw_spinlock_t;
struct mutex { int held; const char *name; };
struct lock_class_key { int unused; };
struct lockdep_map { int unused; };
void shim_lock_taken(const char *file, int line, const char *name);
#define spin_lock_init(l) do { (l)->held = 0; (l)->name = #l; } while (0)
#define raw_spin_lock_init(l) spin_lock_init(l)
#define spin_lock(l) do { \
	if ((l)->held) shim_bug(__FILE__, __LINE__, "spin_lock(" #l ") of a lock that this CPU holds"); \
	(l)->held = 1; shim_lock_taken(__FILE__, __LINE__, #l); } while (0)
#define spin_unlock(l) do { \
	if (!(l)->held) shim_bug(__FILE__, __LINE__, "spin_unlock(" #l ") of a lock that is free"); \
	(l)->held = 0; } while (0)
#define spin_trylock(l) ((l)->held ? 0 : ((l)->held = 1))
#define spin_is_locked(l) ((l)->held)
#define spin_lock_irq(l) spin_lock(l)
#define spin_unlock_irq(l) spin_unlock(l)
#define spin_lock_irqsave(l, f) do { (f) = 0; spin_lock(l); } while (0)
#define spin_unlock_irqrestore(l, f) do { (void)(f); spin_unlock(l); } while (0)
#define raw_spin_lock_irqsave(l, f) spin_lock_irqsave(l, f)
#define raw_spin_unlock_irqrestore(l, f) spin_unlock_irqrestore(l, f)
static inline void shim_unlock(struct shim_lock **l) { spin_unlock(*l); }
#define guard(kind) SHIM_GUARD
#define SHIM_GUARD(l) struct shim_lock *shim_g __attribute__((cleanup(shim_unlock))) = (struct shim_lock *)(l); \
	spin_lock(shim_g)
#define DEFINE_SPINLOCK(n) struct shim_lock n = { 0, #n }
#define mutex_init(m) do { (m)->held = 0; } while (0)
#define mutex_lock(m) spin_lock(m)
#define mutex_unlock(m) spin_unlock(m)
#define mutex_destroy(m) do { } while (0)
#define DEFINE_MUTEX(n) struct mutex n = { 0, #n }
#define lockdep_register_key(k) do { } while (0)
#define lockdep_unregister_key(k) do { } while (0)
#define lockdep_set_class(l, k) do { } while (0)
#define local_irq_save(f) do { (f) = 0; } while (0)
#define local_irq_restore(f) do { (void)(f); } while (0)
#define preempt_disable() do { } while (0)
#define preempt_enable() do { } while (0)

/* Atomic words. */
#define ATOMIC_INIT(v) { v }
#define atomic_read(a) ((a)->counter)
#define atomic_set(a, v) ((a)->counter = (v))
#define atomic_inc(a) ((void)((a)->counter++))
#define atomic_dec(a) ((void)((a)->counter--))
#define atomic_add(n, a) ((void)((a)->counter += (n)))
#define atomic_sub(n, a) ((void)((a)->counter -= (n)))
#define atomic_inc_return(a) (++(a)->counter)
#define atomic_dec_return(a) (--(a)->counter)
#define atomic_add_return(n, a) ((a)->counter += (n))
#define atomic_sub_return(n, a) ((a)->counter -= (n))
#define atomic_dec_and_test(a) (--(a)->counter == 0)
#define atomic_inc_not_zero(a) ((a)->counter ? ((a)->counter++, 1) : 0)
#define atomic_cmpxchg(a, old, new) ({ int shim_was = (a)->counter; if (shim_was == (old)) (a)->counter = (new); shim_was; })
#define atomic_try_cmpxchg(a, old, new) ({ bool shim_ok = (a)->counter == *(old); \
	if (shim_ok) (a)->counter = (new); else *(old) = (a)->counter; shim_ok; })
#define atomic_xchg(a, v) ({ int shim_was = (a)->counter; (a)->counter = (v); shim_was; })
#define atomic_long_read(a) ((a)->counter)
#define atomic_long_try_cmpxchg(a, old, new) atomic_try_cmpxchg(a, old, new)
#define atomic_long_cmpxchg_relaxed(a, old, new) ({ long shim_was = (a)->counter; if (shim_was == (old)) (a)->counter = (new); shim_was; })
#define atomic_long_andnot(m, a) ((void)((a)->counter &= ~(m)))
#define atomic64_read(a) ((a)->counter)
#define atomic64_set(a, v) ((a)->counter = (v))
#define atomic64_add(n, a) ((void)((a)->counter += (n)))
#define atomic64_inc(a) ((void)((a)->counter++))
#define cmpxchg(p, old, new) ({ typeof(*(p)) shim_was = *(p); if (shim_was == (old)) *(p) = (new); shim_was; })
#define xchg(p, v) ({ typeof(*(p)) shim_was = *(p); *(p) = (v); shim_was; })
#define refcount_set(r, v) atomic_set(&(r)->refs, v)
#define refcount_inc(r) atomic_inc(&(r)->refs)
#define refcount_read(r) atomic_read(&(r)->refs)
#define refcount_dec_and_test(r) atomic_dec_and_test(&(r)->refs)
#define refcount_inc_not_zero(r) atomic_inc_not_zero(&(r)->refs)

/* Bits of a word, and of an array of words. */
#define BITS_TO_LONGS(n) DIV_ROUND_UP(n, BITS_PER_LONG)
#define BIT_WORD(n) ((n) / BITS_PER_LONG)
#define DECLARE_BITMAP(n, bits) unsigned long n[BITS_TO_LONGS(bits)]
#define test_bit(n, p) (((p)[BIT_WORD(n)] >> ((n) % BITS_PER_LONG)) & 1)
#define set_bit(n, p) ((void)((p)[BIT_WORD(n)] |= BIT((n) % BITS_PER_LONG)))
#define clear_bit(n, p) ((void)((p)[BIT_WORD(n)] &= ~BIT((n) % BITS_PER_LONG)))
#define __set_bit(n, p) set_bit(n, p)
#define __clear_bit(n, p) clear_bit(n, p)
#define clear_bit_unlock(n, p) clear_bit(n, p)
#define test_and_set_bit(n, p) ({ bool shim_b = test_bit(n, p); set_bit(n, p); shim_b; })
#define test_and_clear_bit(n, p) ({ bool shim_b = test_bit(n, p); clear_bit(n, p); shim_b; })
#define __test_and_clear_bit(n, p) test_and_clear_bit(n, p)
#define test_and_set_bit_lock(n, p) test_and_set_bit(n, p)
unsigned long find_next_bit(const unsigned long *words, unsigned long bits, unsigned long from);
unsigned long find_next_zero_bit(const unsigned long *words, unsigned long bits, unsigned long from);
#define find_first_bit(w, n) find_next_bit(w, n, 0)
#define find_first_zero_bit(w, n) find_next_zero_bit(w, n, 0)
#define for_each_set_bit(b, w, n) \
	for ((b) = find_next_bit(w, n, 0); (b) < (n); (b) = find_next_bit(w, n, (b) + 1))

/* Clocks: the caller sets both before each call. Two readings may differ by a step, as those of a CPU do. */
struct shim_clock { unsigned long ticks; u64 ktime_ns, step_ns; };
extern __thread struct shim_clock shim_clock;
static inline u64 shim_read_clock(void)
{
	u64 now = shim_clock.ktime_ns;

	shim_clock.ktime_ns += shim_clock.step_ns;
	return now;
}
#define jiffies (shim_clock.ticks)
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#if !defined(HZ) || !defined(LINUX_VERSION_CODE)
#error "the build gives HZ and LINUX_VERSION_CODE"
#endif
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define USEC_PER_SEC 1000000L
#define USEC_PER_MSEC 1000L
#define NSEC_PER_SEC 1000000000L
#define MSEC_PER_SEC 1000L
#define ktime_get_ns() shim_read_clock()
#define ktime_get() ((ktime_t)shim_read_clock())
#define blk_time_get_ns() shim_read_clock()
#define blk_time_get() ((ktime_t)shim_read_clock())
#define ktime_to_ns(k) (k)
#define ns_to_ktime(n) ((ktime_t)(n))
#define ktime_to_us(k) ((k) / NSEC_PER_USEC)
#define ktime_sub(a, b) ((a) - (b))
#define ktime_add_ns(a, n) ((a) + (n))
#define ktime_add_us(a, n) ((a) + (n) * NSEC_PER_USEC)
#define ktime_before(a, b) ((a) < (b))
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)
#define time_is_before_jiffies(a) time_after(jiffies, a)
#define time_is_after_jiffies(a) time_before(jiffies, a)
#define time_is_before_eq_jiffies(a) time_after_eq(jiffies, a)
#define time_is_after_eq_jiffies(a) time_before_eq(jiffies, a)
#define MAX_JIFFY_OFFSET ((LONG_MAX >> 1) - 1)
static inline unsigned long msecs_to_jiffies(unsigned int ms)
{
	return (int)ms < 0 ? MAX_JIFFY_OFFSET : DIV_ROUND_UP((unsigned long)ms * HZ, 1000);
}
static inline unsigned int jiffies_to_msecs(unsigned long j) { return j * (1000 / HZ); }
static inline unsigned long nsecs_to_jiffies(u64 n) { return n / (NSEC_PER_SEC / HZ); }
static inline u64 jiffies_to_nsecs(unsigned long j) { return (u64)j * (NSEC_PER_SEC / HZ); }
static inline unsigned long usecs_to_jiffies(unsigned int us) { return DIV_ROUND_UP((unsigned long)us * HZ, 1000000); }

/* Timers: armed here, fired by the caller. */
struct timer_list { void (*function)(struct timer_list *); unsigned long expires; bool armed; };
enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum hrtimer_mode { HRTIMER_MODE_REL, HRTIMER_MODE_REL_PINNED };
#define CLOCK_MONOTONIC 1
struct hrtimer { enum hrtimer_restart (*function)(struct hrtimer *); u64 expires_ns; bool armed; };
void shim_timer_setup(void *timer);
#define timer_setup(t, f, flags) do { (t)->function = (f); (t)->armed = false; shim_timer_setup(t); } while (0)
int timer_reduce(struct timer_list *t, unsigned long expires);
int mod_timer(struct timer_list *t, unsigned long expires);
int timer_delete_sync(struct timer_list *t);
#define del_timer_sync(t) timer_delete_sync(t)
#define timer_shutdown_sync(t) timer_delete_sync(t)
#define from_timer(var, t, field) container_of(t, typeof(*var), field)
#define timer_container_of(var, t, field) container_of(t, typeof(*var), field)
#define hrtimer_init(t, clock, mode) do { (t)->armed = false; shim_timer_setup(t); } while (0)
#define hrtimer_setup(t, f, clock, mode) do { (t)->function = (f); hrtimer_init(t, clock, mode); } while (0)
void hrtimer_start(struct hrtimer *t, ktime_t after, enum hrtimer_mode mode);
int hrtimer_try_to_cancel(struct hrtimer *t);
#define hrtimer_cancel(t) hrtimer_try_to_cancel(t)
struct work_struct { void (*func)(struct work_struct *); };
struct delayed_work { struct work_struct work; };

/* Lists. */
struct list_head { struct list_head *next, *prev; };
struct hlist_head { struct hlist_node *first; };
struct hlist_node { struct hlist_node *next, **pprev; };
#define LIST_HEAD_INIT(n) { &(n), &(n) }
#define LIST_HEAD(n) struct list_head n = LIST_HEAD_INIT(n)
#define INIT_LIST_HEAD(l) do { (l)->next = (l); (l)->prev = (l); } while (0)
static inline void shim_link(struct list_head *entry, struct list_head *before, struct list_head *after)
{
	after->prev = entry;
	entry->next = after;
	entry->prev = before;
	before->next = entry;
}
static inline void list_add(struct list_head *entry, struct list_head *head) { shim_link(entry, head, head->next); }
static inline void list_add_tail(struct list_head *entry, struct list_head *head) { shim_link(entry, head->prev, head); }
static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
	/* Nobody may follow these. */
	entry->next = (void *)0x100;
	entry->prev = (void *)0x122;
}
static inline void list_del_init(struct list_head *entry) { list_del(entry); INIT_LIST_HEAD(entry); }
static inline void list_move(struct list_head *entry, struct list_head *head) { list_del(entry); list_add(entry, head); }
static inline void list_move_tail(struct list_head *entry, struct list_head *head) { list_del(entry); list_add_tail(entry, head); }
static inline bool list_empty(const struct list_head *head) { return head->next == head; }
#define list_empty_careful(head) list_empty(head)
static inline bool list_is_singular(const struct list_head *head) { return !list_empty(head) && head->next == head->prev; }
static inline bool list_is_first(const struct list_head *e, const struct list_head *head) { return e->prev == head; }
static inline bool list_is_last(const struct list_head *e, const struct list_head *head) { return e->next == head; }
static inline void list_splice_init(struct list_head *list, struct list_head *head)
{
	if (list_empty(list))
		return;
	list->prev->next = head->next;
	head->next->prev = list->prev;
	head->next = list->next;
	list->next->prev = head;
	INIT_LIST_HEAD(list);
}
static inline void list_splice_tail_init(struct list_head *list, struct list_head *head) { list_splice_init(list, head->prev); }
#define list_splice_tail(list, head) list_splice_tail_init(list, head)
static inline void list_replace_init(struct list_head *old, struct list_head *entry)
{
	entry->next = old->next;
	entry->next->prev = entry;
	entry->prev = old->prev;
	entry->prev->next = entry;
	INIT_LIST_HEAD(old);
}
#define list_entry(p, type, member) container_of(p, type, member)
#define list_first_entry(h, type, member) list_entry((h)->next, type, member)
#define list_last_entry(h, type, member) list_entry((h)->prev, type, member)
#define list_first_entry_or_null(h, type, member) (list_empty(h) ? NULL : list_first_entry(h, type, member))
#define list_next_entry(p, member) list_entry((p)->member.next, typeof(*(p)), member)
#define list_prev_entry(p, member) list_entry((p)->member.prev, typeof(*(p)), member)
#define list_entry_is_head(p, h, member) (&(p)->member == (h))
#define list_for_each(p, h) for ((p) = (h)->next; (p) != (h); (p) = (p)->next)
#define list_for_each_safe(p, n, h) for ((p) = (h)->next, (n) = (p)->next; (p) != (h); (p) = (n), (n) = (p)->next)
#define list_for_each_entry(p, h, member) \
	for ((p) = list_first_entry(h, typeof(*(p)), member); !list_entry_is_head(p, h, member); (p) = list_next_entry(p, member))
#define list_for_each_entry_reverse(p, h, member) \
	for ((p) = list_last_entry(h, typeof(*(p)), member); !list_entry_is_head(p, h, member); (p) = list_prev_entry(p, member))
#define list_for_each_entry_safe(p, n, h, member) \
	for ((p) = list_first_entry(h, typeof(*(p)), member), (n) = list_next_entry(p, member); \
	     !list_entry_is_head(p, h, member); (p) = (n), (n) = list_next_entry(n, member))
#define HLIST_HEAD_INIT { NULL }
#define INIT_HLIST_HEAD(h) ((h)->first = NULL)
static inline void INIT_HLIST_NODE(struct hlist_node *n) { n->next = NULL; n->pprev = NULL; }
static inline bool hlist_unhashed(const struct hlist_node *n) { return !n->pprev; }
static inline bool hlist_empty(const struct hlist_head *h) { return !h->first; }
static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (n->next)
		n->next->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}
static inline void hlist_del_init(struct hlist_node *n)
{
	if (hlist_unhashed(n))
		return;
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	INIT_HLIST_NODE(n);
}
#define hlist_del(n) hlist_del_init(n)
#define hlist_add_head_rcu(n, h) hlist_add_head(n, h)
#define hlist_entry(p, type, member) container_of(p, type, member)
#define hlist_entry_safe(p, type, member) ({ typeof(p) shim_h = (p); shim_h ? hlist_entry(shim_h, type, member) : NULL; })
#define hlist_for_each_entry(p, h, member) \
	for ((p) = hlist_entry_safe((h)->first, typeof(*(p)), member); (p); \
	     (p) = hlist_entry_safe((p)->member.next, typeof(*(p)), member))
#define hlist_for_each_entry_rcu(p, h, member) hlist_for_each_entry(p, h, member)
#define hlist_for_each_entry_safe(p, n, h, member) \
	for ((p) = hlist_entry_safe((h)->first, typeof(*(p)), member); (p) && ((n) = (p)->member.next, 1); \
	     (p) = hlist_entry_safe(n, typeof(*(p)), member))
#define DECLARE_HASHTABLE(n, bits) struct hlist_head n[1 << (bits)]
#define HASH_BITS(t) ilog2(ARRAY_SIZE(t))
#define hash_init(t) memset(t, 0, sizeof(t))
#define hash_add(t, node, key) hlist_add_head(node, &(t)[hash_min(key, HASH_BITS(t))])
#define hash_del(node) hlist_del_init(node)
#define hash_hashed(node) (!hlist_unhashed(node))
#define hash_for_each_possible(t, p, member, key) hlist_for_each_entry(p, &(t)[hash_min(key, HASH_BITS(t))], member)
#define hash_for_each_possible_safe(t, p, n, member, key) \
	hlist_for_each_entry_safe(p, n, &(t)[hash_min(key, HASH_BITS(t))], member)

/* CPUs: data per CPU is one copy. */
typedef struct { unsigned long bits[4]; } cpumask_t;
struct percpu_ref { int unused; };
struct percpu_counter { s64 count; };
extern __thread int shim_cpu;
#define smp_processor_id() shim_cpu
#define raw_smp_processor_id() shim_cpu
#define get_cpu() shim_cpu
#define put_cpu() do { } while (0)
#define nr_cpu_ids shim_cpus
#define num_online_cpus() shim_cpus
#define num_possible_cpus() shim_cpus
extern __thread int shim_cpus;
#define NR_CPUS 256
#define for_each_possible_cpu(c) for ((c) = 0; (c) < shim_cpus; (c)++)
#define for_each_online_cpu(c) for_each_possible_cpu(c)
#define alloc_percpu(type) ((type *)kzalloc(sizeof(type) * shim_cpus, GFP_KERNEL))
#define alloc_percpu_gfp(type, gfp) alloc_percpu(type)
#define __alloc_percpu_gfp(size, align, gfp) kzalloc((size) * shim_cpus, gfp)
#define free_percpu(p) shim_free(p)
#define per_cpu_ptr(p, c) ((p) + (c))
#define this_cpu_ptr(p) per_cpu_ptr(p, shim_cpu)
#define raw_cpu_ptr(p) this_cpu_ptr(p)
#define get_cpu_ptr(p) this_cpu_ptr(p)
#define put_cpu_ptr(p) ((void)(p))
#define this_cpu_read(x) (*per_cpu_ptr(&(x), shim_cpu))
#define this_cpu_write(x, v) (*per_cpu_ptr(&(x), shim_cpu) = (v))

/* Objects of sysfs and debugfs. */
struct kobject { int refs; };
struct sysfs_ops { void *show, *store; };
struct kobj_type { const struct sysfs_ops *sysfs_ops; void *release; };
struct attribute { const char *name; umode_t mode; };
struct attribute_group;
struct completion { int done; };
struct dentry;
struct device { void *driver_data; };
struct seq_file { void *private; char *text; size_t room; size_t used; void *file; };
struct seq_operations {
	void *(*start)(struct seq_file *, loff_t *);
	void (*stop)(struct seq_file *, void *);
	void *(*next)(struct seq_file *, void *, loff_t *);
	int (*show)(struct seq_file *, void *);
};
#define __ATTR(n, m, s, t) { .attr = { .name = #n, .mode = m }, .show = s, .store = t }
#define __ATTR_RO(n) { .attr = { .name = #n, .mode = 0444 }, .show = n##_show }
#define __ATTR_NULL { .attr = { .name = NULL } }
enum kobject_action { KOBJ_ADD, KOBJ_REMOVE };
#define kobject_init(k, t) ((k)->refs = 1)
#define kobject_get(k) ((k)->refs++)
#define kobject_put(k) do { } while (0)
void seq_printf(struct seq_file *m, const char *format, ...);
void seq_puts(struct seq_file *m, const char *text);
void seq_putc(struct seq_file *m, char c);
void *seq_list_start(struct list_head *head, loff_t pos);
void *seq_list_next(void *v, struct list_head *head, loff_t *pos);

/* Wait queues: no task sleeps here; the caller sees which entries are woken. */
struct wait_queue_entry;
typedef struct wait_queue_entry wait_queue_entry_t;
typedef int (*wait_queue_func_t)(wait_queue_entry_t *, unsigned int mode, int flags, void *key);
struct wait_queue_entry { unsigned int flags; void *private; wait_queue_func_t func; struct list_head entry; };
typedef struct wait_queue_head { spinlock_t lock; struct list_head head; } wait_queue_head_t;
#define TASK_NORMAL 3
#define TASK_UNINTERRUPTIBLE 2
#define init_waitqueue_head(w) do { spin_lock_init(&(w)->lock); INIT_LIST_HEAD(&(w)->head); } while (0)
#define init_waitqueue_func_entry(w, f) do { (w)->flags = 0; (w)->private = NULL; (w)->func = (f); } while (0)
#define waitqueue_active(w) (!list_empty(&(w)->head))
#define WQ_FLAG_EXCLUSIVE 1
void add_wait_queue(wait_queue_head_t *q, wait_queue_entry_t *w);
void prepare_to_wait_exclusive(wait_queue_head_t *q, wait_queue_entry_t *w, int state);
void finish_wait(wait_queue_head_t *q, wait_queue_entry_t *w);
/* Returns how many exclusive entries were woken. */
int wake_up_nr(wait_queue_head_t *q, int nr);
#define wake_up(q) wake_up_nr(q, 1)
#define wake_up_all(q) wake_up_nr(q, 0)
#define autoremove_wake_function NULL

/* Random numbers: of the caller's seed. */
u32 get_random_u32(void);
#define get_random_u32_below(n) (get_random_u32() % (n))
#define prandom_u32_max(n) get_random_u32_below(n)

#endif
