------------------------------- MODULE QueueLife ------------------------------
(***************************************************************************)
(* The life of one queue of a process beside merging: it is scheduled,     *)
(* served, expired, moved to another group, woken by another queue, and    *)
(* read without the lock. Which steps free it, and which use it after      *)
(* that? BFQ's queues, and one entry of CFQ's.                             *)
(*                                                                         *)
(* Each repair that was published is a rule; `Missing` is the one that is  *)
(* left out. `With` names further actors, so that spaces stay small. A     *)
(* step is a critical section under the scheduler's lock, or one access to *)
(* what is read without it.                                                *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Processes,   \* number of processes
  Queues,      \* number of queues that can be created
  Requests,    \* requests that each process submits
  Groups,      \* 1: the root alone; 2: and a group below it, in which processes begin
  With,        \* "plug", "timer", "statistics", "depth", "merge", "waker", "fallback", "move",
               \* "offline", "exit"
  Missing,     \* the rule that is left out, or "none"
  Record       \* remember the last step in `last`

Rules ==
  {"told", "timer", "deschedule", "hold", "statistics", "depth", "chained-waker", "waker",
   "fallback", "atomic", "online", "key"}
Actors ==
  {"plug", "timer", "statistics", "depth", "merge", "waker", "fallback", "move", "offline", "exit"}
ASSUME /\ {Processes, Queues, Requests} \subseteq Nat \ {0}
       /\ Groups \in {1, 2}
       /\ With \subseteq Actors
       /\ Missing \in Rules \union {"none"}
       /\ Record \in BOOLEAN

Has(rule) == Missing # rule
Process == 1..Processes
Own == 1..Queues
None == 0
Oom == Queues + 1                               \* the fallback for want of memory
Queue == IF "fallback" \in With THEN Own \union {Oom} ELSE Own
Group == 1..Groups
Root == 1

VARIABLES
  todo,      \* process: requests that it has not submitted yet
  exited,    \* processes that have exited
  in,        \* process: its group
  looked,    \* process: the group that it has looked up for a request, without the lock
  slot,      \* process: its queue
  born,      \* queues that were created
  ref,       \* queue: all references; a born one without is freed
  queued,    \* queue: its requests that wait
  flight,    \* queue: its requests in the device
  busy,      \* queues that are scheduled
  tree,      \* queues on a service tree or in service, each of which has a reference for that
  serving,   \* the queue in service
  group,     \* queue: where it is served
  online,    \* groups
  gref,      \* group: its references: one of each queue, and its own
  css,       \* groups that have their own
  rcu,       \* group: its count as the callback has read it
  new,       \* queue: the one that its processes are to go to
  waker,     \* queue: its waker; no reference
  timer,     \* the queue that the idle timer has read, without the lock
  depth,     \* process: the queue that the limit of its depth has read, without the lock
  leaving,   \* processes that have read that the scheduler is there, and are to exit
  gone,      \* the scheduler has exited
  used,      \* a freed queue was used
  last       \* the last step and its arguments; no step reads it, the view leaves it out

side == <<todo, exited, in, looked, born, online, css, rcu, timer, depth, leaving, gone>>
state == <<slot, ref, queued, flight, busy, tree, serving, group, gref, new, waker>>
view == <<side, state, used>>
vars == <<view, last>>
Say(step) == last' = IF Record THEN step ELSE last

Init ==
  /\ todo = [p \in Process |-> Requests]
  /\ exited = {}
  /\ in = [p \in Process |-> Groups]
  /\ looked = [p \in Process |-> None]
  /\ slot = [p \in Process |-> None]
  /\ born = 0
  /\ ref = [q \in Queue |-> IF q = Oom THEN 1 ELSE 0]
  /\ queued = [q \in Queue |-> 0]
  /\ flight = [q \in Queue |-> 0]
  /\ busy = {}
  /\ tree = {}
  /\ serving = None
  /\ group = [q \in Queue |-> IF q = Oom THEN Root ELSE None]
  /\ online = Group
  /\ gref = [g \in Group |-> IF g = Root /\ Oom \in Queue THEN 2 ELSE 1]
  /\ css = Group
  /\ rcu = [g \in Group |-> None]
  /\ new = [q \in Queue |-> None]
  /\ waker = [q \in Queue |-> None]
  /\ timer = None
  /\ depth = [p \in Process |-> None]
  /\ leaving = {}
  /\ gone = FALSE
  /\ used = FALSE
  /\ last = [action |-> "Init"]

-----------------------------------------------------------------------------
(* What the functions under the lock do to a state s; ~s.ok: a freed queue was used. *)

Now ==
  [slot |-> slot, ref |-> ref, queued |-> queued, flight |-> flight, busy |-> busy, tree |-> tree,
   serving |-> serving, group |-> group, gref |-> gref, new |-> new, waker |-> waker, ok |-> TRUE]

Becomes(s) ==
  IF s.ok
    THEN /\ slot' = s.slot
         /\ ref' = s.ref
         /\ queued' = s.queued
         /\ flight' = s.flight
         /\ busy' = s.busy
         /\ tree' = s.tree
         /\ serving' = s.serving
         /\ group' = s.group
         /\ gref' = s.gref
         /\ new' = s.new
         /\ waker' = s.waker
         /\ UNCHANGED used
    ELSE used' = TRUE /\ UNCHANGED state

Fails(s) == [s EXCEPT !.ok = FALSE]
Touch(s, q) == IF s.ref[q] > 0 THEN s ELSE Fails(s)
Get(s, q) == [s EXCEPT !.ref[q] = @ + 1]

(* bfq_put_queue(): with the last reference the group's is put, and the queues that it woke have no waker. *)
Put(s, q) ==
  IF ~s.ok \/ s.ref[q] <= 0 THEN Fails(s)
  ELSE IF s.ref[q] > 1 THEN [s EXCEPT !.ref[q] = @ - 1]
  ELSE [s EXCEPT !.ref[q] = 0, !.gref[s.group[q]] = @ - 1, !.group[q] = None,
                 !.new[q] = None,
                 !.waker = [x \in Queue |-> IF x = q \/ s.waker[x] = q THEN None ELSE s.waker[x]]]

(* References of processes: slots, and reservations. *)
Prefs(s, q) ==
  s.ref[q] - s.queued[q] - s.flight[q] - (IF q \in s.tree THEN 1 ELSE 0)
    - (IF q = Oom THEN 1 ELSE 0)

(* A queue is no longer scheduled: bfq_del_bfqq_busy(). It stays on the idle tree (`keep` is 2), or *)
(* is forgotten (1).                                                                               *)
Deschedule(s, q, keep) ==
  LET out == [s EXCEPT !.busy = @ \ {q}] IN
  IF keep = 2 THEN out ELSE Put([out EXCEPT !.tree = @ \ {q}], q)

(* The queue in service is so no longer: __bfq_bfqq_expire(). With `plug` 2 it stays scheduled, though *)
(* empty, so that others have to wait for it.                                                      *)
Stop(s, keep, plug) ==
  LET q == s.serving
      out == [s EXCEPT !.serving = None]
  IN
  IF s.queued[q] > 0 \/ plug = 2 THEN out ELSE Deschedule(out, q, keep)

(* A queue is released by a process: bfq_release_process_ref(). *)
Release(s, q, keep) ==
  LET idle == s.ok /\ q \in s.busy /\ s.queued[q] = 0 /\ s.serving # q IN
  IF Has("deschedule") /\ idle
    THEN Put(Touch(Deschedule(s, q, keep), q), q)
    ELSE Put(s, q)

(* One reference on each queue after q in its chain. *)
RECURSIVE PutFrom(_, _)
PutFrom(s, at) ==
  IF at = None \/ ~s.ok THEN s
  ELSE IF s.ref[at] <= 0 THEN Fails(s)
  ELSE PutFrom(Put(s, at), s.new[at])

(* A process leaves its queue, whose slot is emptied first. *)
Leave(s, p, keep) ==
  LET q == s.slot[p]
      empty == [s EXCEPT !.slot[p] = None]
  IN
  IF q = None THEN s
  ELSE IF s.ref[q] <= 0 THEN Fails(s)
  ELSE Release(PutFrom(empty, s.new[q]), q, keep)

(* A queue goes to another group: bfq_bfqq_move(). *)
Move(s, q, g) ==
  LET held == IF Has("hold") THEN Get(s, q) ELSE s
      stopped == IF s.serving = q THEN Touch(Stop(held, 1, 1), q) ELSE held
      out == IF ~stopped.ok THEN stopped
             ELSE IF q \in stopped.tree
             THEN Touch(Put([stopped EXCEPT !.tree = @ \ {q}], q), q) ELSE stopped
      there == [out EXCEPT !.gref = [x \in Group |->
                             IF x = g THEN @[x] + 1 ELSE IF x = out.group[q] THEN @[x] - 1 ELSE @[x]],
                           !.group[q] = g]
      back == IF q \in there.busy THEN [Get(there, q) EXCEPT !.tree = @ \union {q}] ELSE there
  IN
  IF s.group[q] = g \/ (q = Oom /\ Has("fallback")) THEN s
  ELSE IF ~out.ok THEN out
  ELSE IF Has("hold") THEN Put(back, q) ELSE back

(* All queues of a group that are on a tree go to the root. *)
RECURSIVE MoveAll(_, _)
MoveAll(s, queues) ==
  IF queues = {} \/ ~s.ok THEN s
  ELSE LET q == CHOOSE q \in queues : TRUE IN MoveAll(Move(s, q, Root), queues \ {q})

(* A request joins a queue, which is scheduled by it. *)
Insert(s, q) ==
  LET more == [Get(s, q) EXCEPT !.queued[q] = @ + 1, !.busy = @ \union {q}] IN
  IF q \in s.tree THEN more ELSE [Get(more, q) EXCEPT !.tree = @ \union {q}]

Bear(s, p, g) ==
  [s EXCEPT !.slot[p] = born + 1, !.ref[born + 1] = 1, !.group[born + 1] = g, !.gref[g] = @ + 1]

-----------------------------------------------------------------------------
(* A process. *)

Lives(p) == ~used /\ ~gone /\ p \notin exited /\ p \notin leaving

(* The group of a bio is read before the lock is taken. *)
Look(p) ==
  /\ Lives(p)
  /\ "offline" \in With
  /\ todo[p] > 0
  /\ looked[p] = None
  /\ looked' = [looked EXCEPT ![p] = in[p]]
  /\ Say([action |-> "Look", process |-> p])
  /\ UNCHANGED <<todo, exited, in, born, online, css, rcu, timer, depth, leaving, gone, state, used>>

Seen(p) == IF "offline" \in With THEN looked[p] ELSE in[p]
GroupFor(p) == IF Has("online") /\ Seen(p) \notin online THEN Root ELSE Seen(p)

Submits(p) ==
  /\ Lives(p)
  /\ todo[p] > 0
  /\ Seen(p) # None
  /\ todo' = [todo EXCEPT ![p] = @ - 1]
  /\ looked' = [looked EXCEPT ![p] = None]
  /\ UNCHANGED <<exited, in, online, css, rcu, timer, depth, leaving, gone>>

(* Its first request creates a queue, ... *)
Create(p) ==
  /\ Submits(p)
  /\ slot[p] = None
  /\ born < Queues
  /\ born' = born + 1
  /\ Becomes(Insert(Bear(Now, p, GroupFor(p)), born + 1))
  /\ Say([action |-> "Create", process |-> p])

(* ... or there is no memory for one. *)
Fallback(p) ==
  /\ "fallback" \in With
  /\ Submits(p)
  /\ slot[p] = None
  /\ Becomes(Insert(Get([Now EXCEPT !.slot[p] = Oom], Oom), Oom))
  /\ Say([action |-> "Fallback", process |-> p])
  /\ UNCHANGED born

(* Later ones move the queue to where the process is. *)
Arrive(p) ==
  LET q == slot[p]
      moved == Move(Touch(Now, q), q, GroupFor(p))
  IN
  /\ Submits(p)
  /\ q # None
  /\ Becomes(IF moved.ok THEN Insert(Touch(moved, q), q) ELSE moved)
  /\ Say([action |-> "Arrive", process |-> p])
  /\ UNCHANGED born

(* It exits, or its last thread does; a queue in service expires by that. *)
Exit(p, keep) ==
  /\ Lives(p)
  /\ "exit" \notin With
  /\ depth[p] = None
  /\ looked[p] = None
  /\ exited' = exited \union {p}
  /\ todo' = [todo EXCEPT ![p] = 0]
  /\ Becomes(Leave(IF slot[p] # None /\ serving = slot[p] THEN Stop(Now, keep, 1) ELSE Now, p, keep))
  /\ Say([action |-> "Exit", process |-> p, keep |-> keep])
  /\ UNCHANGED <<in, looked, born, online, css, rcu, timer, depth, leaving, gone>>

(* The process is put into the group. *)
Regroup(p, g) ==
  /\ Lives(p)
  /\ "move" \in With
  /\ g # in[p]
  /\ g \in online
  /\ in' = [in EXCEPT ![p] = g]
  /\ Say([action |-> "Regroup", process |-> p, group |-> g])
  /\ UNCHANGED <<todo, exited, looked, born, online, css, rcu, timer, depth, leaving, gone, state, used>>

-----------------------------------------------------------------------------
(* Service. *)

Same == UNCHANGED side

Serve(q) ==
  /\ ~used
  /\ serving = None
  /\ q \in busy
  /\ Becomes([Touch(Now, q) EXCEPT !.serving = q])
  /\ Say([action |-> "Serve", queue |-> q])
  /\ Same

Dispatch ==
  /\ ~used
  /\ serving # None
  /\ queued[serving] > 0
  /\ Becomes([Now EXCEPT !.queued[serving] = @ - 1, !.flight[serving] = @ + 1])
  /\ Say([action |-> "Dispatch"])
  /\ Same

Complete(q) ==
  /\ ~used
  /\ flight[q] > 0
  /\ Becomes(Put([Now EXCEPT !.flight[q] = @ - 1], q))
  /\ Say([action |-> "Complete", queue |-> q])
  /\ Same

(* bfq_bfqq_expire(): the caller checks whether the queue was freed, or uses it again. *)
Plugs(plug) ==
  plug = 2 => /\ "plug" \in With
              /\ Has("deschedule") => Prefs(Now, serving) > 0
Expired(keep, plug) ==
  LET s == Stop(Now, keep, plug) IN IF Has("told") THEN s ELSE Touch(s, serving)

Expire(keep, plug) ==
  /\ ~used
  /\ serving # None
  /\ IF Plugs(plug) THEN TRUE ELSE FALSE
  /\ Becomes(Expired(keep, plug))
  /\ Say([action |-> "Expire", keep |-> keep, plug |-> plug])
  /\ Same

(* The same within a dispatch, which has remembered the queue for its statistics. *)
Account(keep) ==
  LET s == Expired(keep, 1) IN
  /\ ~used
  /\ "statistics" \in With
  /\ serving # None
  /\ Becomes(IF Has("statistics") \/ ~s.ok THEN s ELSE Touch(s, serving))
  /\ Say([action |-> "Account", keep |-> keep])
  /\ Same

(* One that is idle is forgotten. *)
Forget(q) ==
  /\ ~used
  /\ q \in tree \ busy
  /\ serving # q
  /\ Becomes(Put([Now EXCEPT !.tree = @ \ {q}], q))
  /\ Say([action |-> "Forget", queue |-> q])
  /\ Same

-----------------------------------------------------------------------------
(* Who reads without the lock. *)

TimerReads ==
  /\ ~used
  /\ "timer" \in With
  /\ timer = None
  /\ serving # None
  /\ queued[serving] = 0
  /\ timer' = serving
  /\ Say([action |-> "TimerReads"])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, depth, leaving, gone, state, used>>

(* Under the lock the queue is asked for again, or not. *)
TimerRuns(keep) ==
  /\ ~used
  /\ timer # None
  /\ timer' = None
  /\ Becomes(IF timer = serving THEN Stop(Now, keep, 1)
             ELSE IF Has("timer") THEN Now
             ELSE Touch(Now, timer))
  /\ Say([action |-> "TimerRuns", keep |-> keep])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, depth, leaving, gone>>

(* bfq_limit_depth(), in one of two threads that share the slots. *)
DepthReads(p) ==
  /\ Lives(p)
  /\ "depth" \in With
  /\ depth[p] = None
  /\ slot[p] # None
  /\ depth' = [depth EXCEPT ![p] = slot[p]]
  /\ Say([action |-> "DepthReads", process |-> p])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, timer, leaving, gone, state, used>>

DepthUses(p) ==
  LET q == IF Has("depth") THEN slot[p] ELSE depth[p] IN
  /\ ~used
  /\ depth[p] # None
  /\ depth' = [depth EXCEPT ![p] = None]
  /\ Becomes(IF q = None THEN Now ELSE Touch(Now, q))
  /\ Say([action |-> "DepthUses", process |-> p])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, timer, leaving, gone>>

-----------------------------------------------------------------------------
(* As little of merging as wakers and slots that change need. *)

RECURSIVE Chain(_, _)
Chain(found, at) ==
  IF at = None \/ at \in found THEN found ELSE Chain(found \union {at}, new[at])

Plan(q, n) ==
  /\ ~used
  /\ "merge" \in With
  /\ q \in Own /\ n \in Own /\ q # n
  /\ ref[q] > 0 /\ ref[n] > 0
  /\ new[q] = None /\ new[n] = None
  /\ Prefs(Now, q) > 0 /\ Prefs(Now, n) > 0
  /\ group[q] = group[n]
  /\ Becomes([Now EXCEPT !.new[q] = n, !.ref[n] = @ + Prefs(Now, q)])
  /\ Say([action |-> "Plan", queue |-> q, close |-> n])
  /\ Same

Redirect(p, keep) ==
  LET q == slot[p] n == new[slot[p]] IN
  /\ Lives(p)
  /\ q # None /\ q # Oom
  /\ n # None
  /\ Becomes(Release([Touch(Now, q) EXCEPT !.slot[p] = n], q, keep))
  /\ Say([action |-> "Redirect", process |-> p, keep |-> keep])
  /\ Same

(* Some queue was seen to wake this one. *)
Wake(q, w) ==
  /\ ~used
  /\ "waker" \in With
  /\ q \in Own /\ w \in Own /\ q # w
  /\ ref[q] > 0 /\ ref[w] > 0
  /\ waker[q] = None
  /\ Becomes([Now EXCEPT !.waker[q] = w])
  /\ Say([action |-> "Wake", queue |-> q, waker |-> w])
  /\ Same

(* A process leaves a queue that it shares, or is to leave, and the new one keeps the waker: unless *)
(* that may be freed by the split (bfq_waker_bfqq()). Where the old one is descheduled by it, an    *)
(* idle queue may be forgotten; `forgotten` is the old one where none is.                          *)
Kept(q) ==
  LET w == waker[q] IN
  IF w = None THEN None
  ELSE IF w \in Chain({}, new[q])
  THEN IF Has("chained-waker") /\ Prefs(Now, w) = 1 THEN None ELSE w
  ELSE IF Has("waker") /\ Prefs(Now, w) = 0 THEN None ELSE w

Split(p, keep, forgotten) ==
  LET q == slot[p]
      left == Leave(Touch(Now, q), p, keep)
      idle == q \in busy /\ queued[q] = 0 /\ serving # q
      later == IF forgotten = q \/ ~left.ok THEN left
               ELSE Put([left EXCEPT !.tree = @ \ {forgotten}], forgotten)
      grown == Bear(later, p, in[p])
      w == Kept(q)
  IN
  /\ Lives(p)
  /\ "waker" \in With
  /\ q # None /\ q # Oom
  /\ Prefs(Now, q) > 1 \/ new[q] # None
  /\ born < Queues
  /\ forgotten \in {q} \union (IF idle THEN (tree \ busy) \ {q} ELSE {})
  /\ Becomes(IF ~later.ok THEN later
             ELSE IF w = None THEN grown
             ELSE [Touch(grown, w) EXCEPT !.waker[born + 1] = w])
  /\ born' = born + 1
  /\ Say([action |-> "Split", process |-> p, keep |-> keep, forgotten |-> forgotten])
  /\ UNCHANGED <<todo, exited, in, looked, online, css, rcu, timer, depth, leaving, gone>>

-----------------------------------------------------------------------------
(* Groups. *)

(* Nobody is in the group any more: its queues that are scheduled go to the root. *)
Offline(g) ==
  /\ ~used
  /\ "offline" \in With
  /\ g # Root /\ g \in online
  /\ (\A p \in Process \ exited : in[p] # g)
  /\ online' = online \ {g}
  /\ Becomes(MoveAll(Now, {q \in tree : group[q] = g}))
  /\ Say([action |-> "Offline", group |-> g])
  /\ UNCHANGED <<todo, exited, in, looked, born, css, rcu, timer, depth, leaving, gone>>

(* The callback of its end puts its own reference: at once, or by a load and a store. *)
GroupPut(g) ==
  /\ ~used
  /\ Has("atomic")
  /\ g \in css \ online
  /\ css' = css \ {g}
  /\ Becomes([Now EXCEPT !.gref[g] = @ - 1])
  /\ Say([action |-> "GroupPut", group |-> g])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, rcu, timer, depth, leaving, gone>>

GroupLoad(g) ==
  /\ ~used
  /\ ~Has("atomic")
  /\ g \in css \ online
  /\ rcu[g] = None
  /\ rcu' = [rcu EXCEPT ![g] = gref[g]]
  /\ Say([action |-> "GroupLoad", group |-> g])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, timer, depth, leaving, gone, state, used>>

GroupStore(g) ==
  /\ ~used
  /\ rcu[g] # None
  /\ css' = css \ {g}
  /\ rcu' = [rcu EXCEPT ![g] = None]
  /\ Becomes([Now EXCEPT !.gref[g] = rcu[g] - 1])
  /\ Say([action |-> "GroupStore", group |-> g])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, timer, depth, leaving, gone>>

-----------------------------------------------------------------------------
(* A task that exits, and the scheduler that does. *)

KeyReads(p) ==
  /\ Lives(p)
  /\ "exit" \in With
  /\ leaving' = leaving \union {p}
  /\ Say([action |-> "KeyReads", process |-> p])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, timer, depth, gone, state, used>>

(* With the lock, once more, or not. *)
KeyUses(p) ==
  /\ ~used
  /\ p \in leaving
  /\ leaving' = leaving \ {p}
  /\ exited' = exited \union {p}
  /\ todo' = [todo EXCEPT ![p] = 0]
  /\ Becomes(IF gone /\ Has("key") THEN Now ELSE Leave(Now, p, 1))
  /\ Say([action |-> "KeyUses", process |-> p])
  /\ UNCHANGED <<in, looked, born, online, css, rcu, timer, depth, gone>>

(* The slots are not looked at again. *)
RECURSIVE LeaveAll(_, _)
LeaveAll(s, processes) ==
  IF processes = {} \/ ~s.ok THEN s
  ELSE LET p == CHOOSE p \in processes : TRUE
           left == Leave(s, p, 1)
       IN  LeaveAll([left EXCEPT !.slot[p] = s.slot[p]], processes \ {p})

SchedulerExits ==
  /\ ~used
  /\ ~gone
  /\ "exit" \in With
  /\ serving = None /\ busy = {}
  /\ (\A q \in Queue : queued[q] + flight[q] = 0)
  /\ gone' = TRUE
  /\ Becomes(LeaveAll(Now, Process \ exited))
  /\ Say([action |-> "SchedulerExits"])
  /\ UNCHANGED <<todo, exited, in, looked, born, online, css, rcu, timer, depth, leaving>>

-----------------------------------------------------------------------------
Next ==
  \/ (\E p \in Process : Look(p))
  \/ (\E p \in Process : Create(p))
  \/ (\E p \in Process : Fallback(p))
  \/ (\E p \in Process : Arrive(p))
  \/ (\E p \in Process, keep \in 1..2 : Exit(p, keep))
  \/ (\E p \in Process, g \in Group : Regroup(p, g))
  \/ (\E q \in Queue : Serve(q))
  \/ Dispatch
  \/ (\E q \in Queue : Complete(q))
  \/ (\E keep, plug \in 1..2 : Expire(keep, plug))
  \/ (\E keep \in 1..2 : Account(keep))
  \/ (\E q \in Queue : Forget(q))
  \/ TimerReads
  \/ (\E keep \in 1..2 : TimerRuns(keep))
  \/ (\E p \in Process : DepthReads(p))
  \/ (\E p \in Process : DepthUses(p))
  \/ (\E q, n \in Queue : Plan(q, n))
  \/ (\E p \in Process, keep \in 1..2 : Redirect(p, keep))
  \/ (\E q, w \in Queue : Wake(q, w))
  \/ (\E p \in Process, keep \in 1..2, forgotten \in Own : Split(p, keep, forgotten))
  \/ (\E g \in Group : Offline(g))
  \/ (\E g \in Group : GroupPut(g))
  \/ (\E g \in Group : GroupLoad(g))
  \/ (\E g \in Group : GroupStore(g))
  \/ (\E p \in Process : KeyReads(p))
  \/ (\E p \in Process : KeyUses(p))
  \/ SchedulerExits

Spec == Init /\ [][Next]_vars

(* Nobody uses a freed queue (I1). *)
LiveDeref == ~used

(* Every reference has a holder (I2): slots, processes still to come along the chain, requests,    *)
(* the service tree, the pin.                                                                      *)
Holders(q) ==
  Cardinality({p \in Process : slot[p] # None /\ q \in Chain({}, slot[p])})
RefExact ==
  gone \/ \A q \in Queue :
    ref[q] = Holders(q) + queued[q] + flight[q] + (IF q \in tree THEN 1 ELSE 0)
               + (IF q = Oom THEN 1 ELSE 0)

(* Everybody has exited and nothing is under way: no queue is left (I5). *)
Quiet ==
  /\ exited = Process \/ gone
  /\ tree = {}
  /\ (\A q \in Queue : queued[q] + flight[q] = 0)
NoLeak == (Quiet /\ ~used) => (\A q \in Own : ref[q] = 0)

(* Who is scheduled or in service is there (I8). *)
TreeMember == \A q \in busy \union tree \union ({serving} \ {None}) : ref[q] > 0

(* The device idles for no queue without requests and without processes. *)
BusyOwned == \A q \in busy : (queued[q] = 0 /\ serving # q) => Prefs(Now, q) > 0

WakerLive == \A q \in Queue : waker[q] # None => ref[waker[q]] > 0

(* A group is there as long as queues are in it, and no longer. *)
GroupExact ==
  \A g \in Group :
    gref[g] = Cardinality({q \in Queue : ref[q] > 0 /\ group[q] = g}) + (IF g \in css THEN 1 ELSE 0)

(* No queue is scheduled in a group that has ended (I7, I8). *)
OnlineOnly == \A q \in busy : group[q] \in online

(* The fallback is no group's. *)
FallbackRoot == Oom \in Queue => group[Oom] = Root

(* What schedules and traces show of a state. *)
Observed ==
  [slot |-> slot, born |-> born, ref |-> ref, queued |-> queued, flight |-> flight, serving |-> serving,
   group |-> group, gref |-> gref, new |-> new, waker |-> waker, used |-> used]

(* To be violated: shows that processes can end well. *)
NeverAllDone == ~(Quiet /\ born > 1 /\ ~used /\ \A q \in Own : ref[q] = 0)
=============================================================================
