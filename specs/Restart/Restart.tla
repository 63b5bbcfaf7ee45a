------------------------------- MODULE Restart -------------------------------
(***************************************************************************)
(* Who runs a hardware queue again: SCHED_RESTART, the wait queue for      *)
(* driver tags, and the re-check after a put-back, with tags that several  *)
(* queues share. Kernels v4.11 to v6.12, chosen by the constants.          *)
(*                                                                         *)
(* One step is one critical section or one access to a shared word outside *)
(* a lock, but for the steps that README.md lists as coarser. Not here:    *)
(* memory order (crates/blkmq/tests/loom.rs), prices, times.               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Requests,      \* set: integers, or model values where symmetry is used
  Queues,        \* number of request queues on the tag set
  Hctxs,         \* hardware queues of each; the k-th ones share tag map k
  Contexts,      \* dispatch contexts of each hctx that can be under way at once
  Tags,          \* driver tags of each map
  Limit,         \* requests that the device holds at once; 0: any number
  RestartRule,   \* "R1" "R2" "R2p" "R0" "R4" "all"
  Policy,        \* "strict" "rc4" "later"
  WaitRule,      \* "none" "one" "all"
  EntryRule,     \* "kept" "second" "any"
  Recheck,       \* "4.14" "4.15"
  WokenRun,      \* "always" "needed": a woken hctx is run only if it has work (v4.15)
  MarkSplit,     \* the counter is a step of its own after the bit
  DriverReruns,  \* the driver runs what it refused when a request ends
  LowestFirst,   \* requests are inserted in order (integers only)
  Record         \* remember the last step in `last`

ASSUME /\ Queues \in Nat \ {0}
       /\ Hctxs \in Nat \ {0}
       /\ Contexts \in Nat \ {0}
       /\ Tags \in Nat \ {0}
       /\ Limit \in Nat
       /\ RestartRule \in {"R1", "R2", "R2p", "R0", "R4", "all"}
       /\ Policy \in {"strict", "rc4", "later"}
       /\ WaitRule \in {"none", "one", "all"}
       /\ EntryRule \in {"kept", "second", "any"}
       /\ Recheck \in {"4.14", "4.15"}
       /\ WokenRun \in {"always", "needed"}
       /\ {MarkSplit, DriverReruns, LowestFirst, Record} \subseteq BOOLEAN

Queue == 1..Queues
Map == 1..Hctxs
Hctx == Queue \X Map
Ctx == 1..Contexts
QueueOf(h) == h[1]
MapOf(h) == h[2]

VARIABLES
  state,     \* request: "new" "live" "device" "freed" "done"
  home,      \* request in the device or freed: its hctx; otherwise none
  sched,     \* queue: the scheduler's list
  disp,      \* hctx: dispatch list
  restart,   \* hctx: SCHED_RESTART
  pending,   \* hctx: a run is scheduled
  tags,      \* map: free driver tags
  waiters,   \* map: hctxs on the wait queue, the first one is woken first
  qcount,    \* queue: counter of marked hctxs (R2), or flag "some are marked" (R0)
  mcount,    \* map: counter of marked hctxs (R2p)
  starved,   \* hctxs that the driver promised to run
  ctx,       \* hctx, context: where it is, and what it holds
  last       \* the last step and its arguments; no step reads it, the view leaves it out

view == <<state, home, sched, disp, restart, pending, tags, waiters, qcount, mcount, starved, ctx>>
vars == <<view, last>>

None == <<>>
Say(step) == last' = IF Record THEN step ELSE last

(* A context: `at` is its next step. `list` is what it took off the dispatch list or got from the *)
(* scheduler. `left`: these are leftovers; `moved`: one of the leftovers was issued; `notag`: it  *)
(* stopped for lack of a tag. What no later step reads is reset.                                  *)
Idle == [at |-> "Start", list |-> <<>>, left |-> FALSE, moved |-> FALSE, notag |-> FALSE]

Init ==
  /\ state = [r \in Requests |-> "new"]
  /\ home = [r \in Requests |-> None]
  /\ sched = [q \in Queue |-> <<>>]
  /\ disp = [h \in Hctx |-> <<>>]
  /\ restart = [h \in Hctx |-> FALSE]
  /\ pending = [h \in Hctx |-> FALSE]
  /\ tags = [m \in Map |-> Tags]
  /\ waiters = [m \in Map |-> <<>>]
  /\ qcount = [q \in Queue |-> 0]
  /\ mcount = [m \in Map |-> 0]
  /\ starved = {}
  /\ ctx = [h \in Hctx |-> [c \in Ctx |-> Idle]]
  /\ last = [action |-> "Init"]

Range(s) == {s[i] : i \in 1..Len(s)}
Without(s, x) == SelectSeq(s, LAMBDA y : y # x)
InDevice == {r \in Requests : state[r] = "device"}
Waits(h) == h \in Range(waiters[MapOf(h)])
Put(h, c, new) == ctx' = [ctx EXCEPT ![h][c] = new]

-----------------------------------------------------------------------------
(* A request arrives: into the scheduler, or past it to the head of the dispatch list (bypass). *)

MayInsert(r) ==
  IF LowestFirst THEN \A s \in Requests : state[s] = "new" => r <= s ELSE TRUE

InsertSched(r, h) ==
  /\ state[r] = "new"
  /\ MayInsert(r)
  /\ state' = [state EXCEPT ![r] = "live"]
  /\ sched' = [sched EXCEPT ![QueueOf(h)] = Append(@, r)]
  /\ pending' = [pending EXCEPT ![h] = TRUE]
  /\ Say([action |-> "InsertSched", request |-> r, hctx |-> h])
  /\ UNCHANGED <<home, disp, restart, tags, waiters, qcount, mcount, starved, ctx>>

InsertBypass(r, h) ==
  /\ state[r] = "new"
  /\ MayInsert(r)
  /\ state' = [state EXCEPT ![r] = "live"]
  /\ disp' = [disp EXCEPT ![h] = <<r>> \o @]
  /\ pending' = [pending EXCEPT ![h] = TRUE]
  /\ Say([action |-> "InsertBypass", request |-> r, hctx |-> h])
  /\ UNCHANGED <<home, sched, restart, tags, waiters, qcount, mcount, starved, ctx>>

-----------------------------------------------------------------------------
(* A run of a hardware queue. *)

(* The scheduled run begins in the first idle context: the whole dispatch list becomes its own. *)
Start(h, c) ==
  /\ pending[h]
  /\ ctx[h][c].at = "Start"
  /\ \A d \in Ctx : d < c => ctx[h][d].at # "Start"
  /\ pending' = [pending EXCEPT ![h] = FALSE]
  /\ IF disp[h] = <<>>
       THEN Put(h, c, [Idle EXCEPT !.at = "Ask"])
       ELSE Put(h, c, [Idle EXCEPT !.at = "Mark", !.list = disp[h], !.left = TRUE])
  /\ disp' = [disp EXCEPT ![h] = <<>>]
  /\ Say([action |-> "Start", hctx |-> h, context |-> c])
  /\ UNCHANGED <<state, home, sched, restart, tags, waiters, qcount, mcount, starved>>

(* What the counters become when hctx h is marked. *)
CountedQ(h) ==
  CASE RestartRule = "R2" -> [qcount EXCEPT ![QueueOf(h)] = @ + 1]
    [] RestartRule = "R0" -> [qcount EXCEPT ![QueueOf(h)] = 1]
    [] OTHER -> qcount
CountedM(h) ==
  IF RestartRule = "R2p" THEN [mcount EXCEPT ![MapOf(h)] = @ + 1] ELSE mcount

Mark(h, c) ==
  /\ ctx[h][c].at = "Mark"
  /\ restart' = [restart EXCEPT ![h] = TRUE]
  /\ IF restart[h]
       THEN /\ Put(h, c, [ctx[h][c] EXCEPT !.at = "Issue"])
            /\ UNCHANGED <<qcount, mcount>>
       ELSE IF MarkSplit
       THEN /\ Put(h, c, [ctx[h][c] EXCEPT !.at = "Count"])
            /\ UNCHANGED <<qcount, mcount>>
       ELSE /\ Put(h, c, [ctx[h][c] EXCEPT !.at = "Issue"])
            /\ qcount' = CountedQ(h)
            /\ mcount' = CountedM(h)
  /\ Say([action |-> "Mark", hctx |-> h, context |-> c])
  /\ UNCHANGED <<state, home, sched, disp, pending, tags, waiters, starved>>

Count(h, c) ==
  /\ ctx[h][c].at = "Count"
  /\ Put(h, c, [ctx[h][c] EXCEPT !.at = "Issue"])
  /\ qcount' = CountedQ(h)
  /\ mcount' = CountedM(h)
  /\ Say([action |-> "Count", hctx |-> h, context |-> c])
  /\ UNCHANGED <<state, home, sched, disp, restart, pending, tags, waiters, starved>>

(* Whether the scheduler is asked after a list of leftovers. *)
Asks(moved) ==
  CASE Policy = "strict" -> FALSE
    [] Policy = "rc4" -> ~moved
    [] Policy = "later" -> moved

(* Where a context goes when its list is empty, and when the rest was put back. *)
Issued(me) ==
  LET rest == Tail(me.list) IN
  IF rest # <<>> THEN [me EXCEPT !.at = "Issue", !.list = rest, !.moved = me.left]
  ELSE IF ~me.left \/ Asks(TRUE) THEN [Idle EXCEPT !.at = "Ask"]
  ELSE Idle
PutBackDone(me) ==
  IF me.left /\ Asks(me.moved) THEN [Idle EXCEPT !.at = "Ask"] ELSE Idle

(* With a tag in hand: the device takes the head of the list, or it is full. *)
Offer(h, c) ==
  LET me == ctx[h][c]
      r == Head(me.list)
  IN IF Limit = 0 \/ Cardinality(InDevice) < Limit
       THEN /\ state' = [state EXCEPT ![r] = "device"]
            /\ home' = [home EXCEPT ![r] = h]
            /\ tags' = [tags EXCEPT ![MapOf(h)] = @ - 1]
            /\ Put(h, c, Issued(me))
            /\ UNCHANGED starved
       ELSE /\ Put(h, c, [me EXCEPT !.at = "PutBack"])
            /\ starved' = IF DriverReruns THEN starved \union {h} ELSE starved
            /\ UNCHANGED <<state, home, tags>>

GiveUp(me) == [me EXCEPT !.at = "PutBack", !.notag = (Recheck = "4.15")]

(* The first attempt to get a tag; without one the entry goes onto the wait queue. *)
Issue(h, c) ==
  /\ ctx[h][c].at = "Issue"
  /\ IF tags[MapOf(h)] > 0
       THEN /\ Offer(h, c)
            /\ waiters' = IF EntryRule = "any"
                            THEN [waiters EXCEPT ![MapOf(h)] = Without(@, h)]
                            ELSE waiters
       ELSE /\ IF WaitRule = "none" \/ Waits(h)
                 THEN /\ Put(h, c, GiveUp(ctx[h][c]))
                      /\ UNCHANGED waiters
                 ELSE /\ Put(h, c, [ctx[h][c] EXCEPT !.at = "Retry"])
                      /\ waiters' = [waiters EXCEPT ![MapOf(h)] = Append(@, h)]
            /\ UNCHANGED <<state, home, tags, starved>>
  /\ Say([action |-> "Issue", hctx |-> h, context |-> c])
  /\ UNCHANGED <<sched, disp, restart, pending, qcount, mcount>>

(* The second attempt, with the entry on the wait queue unless it was woken meanwhile. *)
Retry(h, c) ==
  /\ ctx[h][c].at = "Retry"
  /\ IF tags[MapOf(h)] > 0
       THEN /\ Offer(h, c)
            /\ waiters' = IF EntryRule = "kept"
                            THEN waiters
                            ELSE [waiters EXCEPT ![MapOf(h)] = Without(@, h)]
       ELSE /\ Put(h, c, GiveUp(ctx[h][c]))
            /\ UNCHANGED <<state, home, tags, starved, waiters>>
  /\ Say([action |-> "Retry", hctx |-> h, context |-> c])
  /\ UNCHANGED <<sched, disp, restart, pending, qcount, mcount>>

(* The rest goes back to the head of the dispatch list, and the re-check may schedule a run. *)
PutBack(h, c) ==
  LET me == ctx[h][c]
      again == IF Recheck = "4.14"
                 THEN ~restart[h] /\ ~Waits(h)
                 ELSE ~restart[h] \/ (me.notag /\ ~Waits(h))
  IN /\ me.at = "PutBack"
     /\ disp' = [disp EXCEPT ![h] = me.list \o @]
     /\ pending' = [pending EXCEPT ![h] = @ \/ again]
     /\ Put(h, c, PutBackDone(me))
     /\ Say([action |-> "PutBack", hctx |-> h, context |-> c])
     /\ UNCHANGED <<state, home, sched, restart, tags, waiters, qcount, mcount, starved>>

(* One request of the scheduler, or the end of the run. *)
Ask(h, c) ==
  /\ ctx[h][c].at = "Ask"
  /\ IF sched[QueueOf(h)] = <<>>
       THEN /\ Put(h, c, Idle)
            /\ UNCHANGED sched
       ELSE /\ Put(h, c, [Idle EXCEPT !.at = "Issue", !.list = <<Head(sched[QueueOf(h)])>>])
            /\ sched' = [sched EXCEPT ![QueueOf(h)] = Tail(@)]
  /\ Say([action |-> "Ask", hctx |-> h, context |-> c])
  /\ UNCHANGED <<state, home, disp, restart, pending, tags, waiters, qcount, mcount, starved>>

Run(h, c) ==
  \/ Start(h, c) \/ Mark(h, c) \/ Count(h, c) \/ Issue(h, c) \/ Retry(h, c)
  \/ PutBack(h, c) \/ Ask(h, c)

-----------------------------------------------------------------------------
(* A completion: the tag and its wake first, then the restart rule. *)

HasWork(h) == disp[h] # <<>> \/ sched[QueueOf(h)] # <<>>

(* Up to v4.14 blk_mq_run_hw_queue() does not look whether anything is pending. *)
WokenRuns(h) == WokenRun = "always" \/ HasWork(h)

Free(r) ==
  LET m == MapOf(home[r])
      woken == CASE WaitRule = "one" -> IF waiters[m] = <<>> THEN {} ELSE {Head(waiters[m])}
                 [] OTHER -> Range(waiters[m])
  IN /\ state[r] = "device"
     /\ state' = [state EXCEPT ![r] = "freed"]
     /\ tags' = [tags EXCEPT ![m] = @ + 1]
     /\ waiters' = [waiters EXCEPT ![m] = SelectSeq(@, LAMBDA h : h \notin woken)]
     /\ pending' = [h \in Hctx |-> pending[h] \/ (h \in woken /\ WokenRuns(h))]
     /\ Say([action |-> "Free", request |-> r])
     /\ UNCHANGED <<home, sched, disp, restart, qcount, mcount, starved, ctx>>

(* All hctxs of one tag map, the queue of h last. *)
ScanOrder(h) ==
  [k \in 1..Queues |-> <<((QueueOf(h) + k - 1) % Queues) + 1, MapOf(h)>>]

(* R1, R2, R2p: unmark one after another until one that has work is found. *)
Scan(h) ==
  LET order == ScanOrder(h)
      hits == {k \in 1..Queues : restart[order[k]] /\ HasWork(order[k])}
      stop == IF hits = {} THEN Queues ELSE CHOOSE k \in hits : \A j \in hits : k <= j
  IN [unmarked |-> {order[k] : k \in {j \in 1..stop : restart[order[j]]}},
      run |-> IF hits = {} THEN {} ELSE {order[stop]}]

Nothing == [unmarked |-> {}, run |-> {}]
Marked(hs) == {h \in hs : restart[h]}
(* R0, R4, all: a marked hctx runs if it has work (blk_mq_run_hw_queue looks itself). *)
Each(hs) == [unmarked |-> Marked(hs), run |-> {h \in Marked(hs) : HasWork(h)}]

(* Whom the free of a request of hctx h unmarks and runs. *)
Restarted(h) ==
  CASE RestartRule = "R1" -> Scan(h)
    [] RestartRule = "R2" -> IF qcount[QueueOf(h)] = 0 THEN Nothing ELSE Scan(h)
    [] RestartRule = "R2p" -> IF mcount[MapOf(h)] = 0 THEN Nothing ELSE Scan(h)
    [] RestartRule = "R0" ->
         IF qcount[QueueOf(h)] = 0 THEN Nothing ELSE Each({QueueOf(h)} \X Map)
    [] RestartRule = "R4" -> Each({h})
    [] RestartRule = "all" -> Each(Hctx)

Restart(r) ==
  LET h == home[r]
      rule == Restarted(h)
  IN /\ state[r] = "freed"
     /\ state' = [state EXCEPT ![r] = "done"]
     /\ home' = [home EXCEPT ![r] = None]
     /\ restart' = [x \in Hctx |-> restart[x] /\ x \notin rule.unmarked]
     /\ pending' = [x \in Hctx |-> pending[x] \/ x \in rule.run \/ x \in starved]
     /\ starved' = {}
     /\ qcount' = CASE RestartRule = "R2" ->
                         [q \in Queue |->
                            qcount[q] - Cardinality({x \in rule.unmarked : QueueOf(x) = q})]
                    [] RestartRule = "R0" -> [qcount EXCEPT ![QueueOf(h)] = 0]
                    [] OTHER -> qcount
     /\ mcount' = IF RestartRule = "R2p"
                    THEN [mcount EXCEPT ![MapOf(h)] = @ - Cardinality(rule.unmarked)]
                    ELSE mcount
     /\ Say([action |-> "Restart", request |-> r])
     /\ UNCHANGED <<sched, disp, tags, waiters, ctx>>

-----------------------------------------------------------------------------
Next ==
  \/ (\E r \in Requests, h \in Hctx : InsertSched(r, h))
  \/ (\E r \in Requests, h \in Hctx : InsertBypass(r, h))
  \/ (\E h \in Hctx, c \in Ctx : Start(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Mark(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Count(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Issue(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Retry(h, c))
  \/ (\E h \in Hctx, c \in Ctx : PutBack(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Ask(h, c))
  \/ (\E r \in Requests : Free(r))
  \/ (\E r \in Requests : Restart(r))

Spec == Init /\ [][Next]_vars

(* A context that can continue does so at last; no insertion is forced. *)
Fairness ==
  /\ (\A h \in Hctx, c \in Ctx : WF_vars(Run(h, c)))
  /\ (\A r \in Requests : WF_vars(Free(r)) /\ WF_vars(Restart(r)))
FairSpec == Spec /\ Fairness

-----------------------------------------------------------------------------
Quiet ==
  /\ \A h \in Hctx : ~pending[h]
  /\ \A h \in Hctx, c \in Ctx : ctx[h][c].at = "Start"
  /\ \A r \in Requests : state[r] \notin {"device", "freed"}

(* Nothing runs, nothing will, and a request waits: it waits for ever. *)
NoStall == Quiet => \A r \in Requests : state[r] \in {"new", "done"}

(* A tag is free or its request is in the device. *)
TagsExact ==
  \A m \in Map :
    tags[m] + Cardinality({r \in InDevice : MapOf(home[r]) = m}) = Tags

(* The counters equal the marked hctxs, except while a marking is half done. *)
CountersExact ==
  (\A h \in Hctx, c \in Ctx : ctx[h][c].at # "Count") =>
    /\ RestartRule = "R2" =>
         \A q \in Queue : qcount[q] = Cardinality({h \in Hctx : QueueOf(h) = q /\ restart[h]})
    /\ RestartRule = "R0" =>
         \A q \in Queue : (qcount[q] = 1) = (\E h \in Hctx : QueueOf(h) = q /\ restart[h])
    /\ RestartRule = "R2p" =>
         \A m \in Map : mcount[m] = Cardinality({h \in Hctx : MapOf(h) = m /\ restart[h]})

(* A live request is in exactly one list, and lists hold nothing else. *)
RECURSIVE Joined(_, _)
Joined(lists, domain) ==
  IF domain = {} THEN <<>>
  ELSE LET x == CHOOSE x \in domain : TRUE IN lists[x] \o Joined(lists, domain \ {x})
NothingLost ==
  LET held == Joined(sched, Queue) \o Joined(disp, Hctx)
                \o Joined([x \in Hctx \X Ctx |-> ctx[x[1]][x[2]].list], Hctx \X Ctx)
      live == {r \in Requests : state[r] = "live"}
  IN /\ Len(held) = Cardinality(live)
     /\ Range(held) = live

EveryRequestEnds == \A r \in Requests : (state[r] = "live") ~> (state[r] = "done")

(* What schedules and traces show of a state. *)
Observed ==
  [tags |-> tags, restart |-> restart, pending |-> pending, waiters |-> waiters, sched |-> sched,
   disp |-> disp, qcount |-> qcount, mcount |-> mcount, state |-> state]

(* To be violated: shows that a run can end well. *)
NeverAllDone == ~(Quiet /\ \A r \in Requests : state[r] = "done")
=============================================================================
