------------------------------ MODULE CfqMerge -------------------------------
(***************************************************************************)
(* CFQ: queues of processes that read next to each other become one, and   *)
(* fall apart again. Everything here happens under the queue's lock, so    *)
(* one step is one critical section. The question is whether references    *)
(* are right: which of the published rules free a queue that is still      *)
(* read, and which leave one for ever?                                     *)
(*                                                                         *)
(* Closeness, priorities and the active queue are free choices.            *)
(* What a step would read of a freed queue is not modelled: it sets `used` *)
(* and changes nothing else, and nothing follows. Numbers of queues are    *)
(* given out in order and never again.                                     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Processes,   \* number of processes
  Queues,      \* number of queues that can be created
  Requests,    \* requests that each process submits, one after another
  Async,       \* the asynchronous queue: "none", may be "current", "never" is
  Direction,   \* towards the queue with more process references
  ZeroChecks,  \* no merge of a queue without process references
  Split,       \* "none", puts the "queue" alone, or the "chain" as well
  Regroup,     \* a process that changes its group, the same
  Oom,         \* the fallback queue: "none", its reference is "lost" or "put" by its successor
  Table,       \* the asynchronous queue is there from the "first"; else a process asks for it, and
               \* the fallback comes into its place ("any"), or does not ("own")
  Groups,      \* number of groups that processes belong to, in turn
  SameGroup,   \* no merge across groups
  Record       \* remember the last step in `last`

ASSUME /\ {Processes, Queues, Requests, Groups} \subseteq Nat \ {0}
       /\ Async \in {"none", "current", "never"}
       /\ {Split, Regroup} \subseteq {"none", "queue", "chain"}
       /\ Oom \in {"none", "lost", "put"}
       /\ Table \in {"first", "any", "own"}
       /\ {Direction, ZeroChecks, SameGroup, Record} \subseteq BOOLEAN

Process == 1..Processes
Own == 1..Queues                                \* created by a process
None == 0
AsyncQueue == Queues + 1
OomQueue == IF Async = "none" THEN Queues + 1 ELSE Queues + 2
Pinned ==
  (IF Async = "none" THEN {} ELSE {AsyncQueue}) \union (IF Oom = "none" THEN {} ELSE {OomQueue})
Queue == Own \union Pinned

VARIABLES
  todo,      \* process: requests that it has not submitted yet
  exited,    \* processes that have exited
  slot,      \* process: its synchronous queue
  slotAsync, \* process: its asynchronous queue
  born,      \* queues that were created
  ref,       \* queue: its references as the kernel counts them; a born one without is freed
  new,       \* queue: the one that its processes are to go to
  io,        \* queue: its requests, from allocation to completion
  group,     \* queue: the group of the process that created it; a pinned one has none
  table,     \* the asynchronous queue that all processes get
  used,      \* a freed queue was read or written
  last       \* the last step and its arguments; no step reads it, the view leaves it out

view == <<todo, exited, slot, slotAsync, born, ref, new, io, group, table, used>>
vars == <<view, last>>
Say(step) == last' = IF Record THEN step ELSE last

(* Who is never freed: the fallback, and what is in the table. *)
First == IF Async = "none" \/ Table # "first" THEN None ELSE AsyncQueue
Holds(q, t) == (q = OomQueue /\ Oom # "none") \/ (q = AsyncQueue /\ Async # "none" /\ q = t)

Init ==
  /\ todo = [p \in Process |-> Requests]
  /\ exited = {}
  /\ slot = [p \in Process |-> None]
  /\ slotAsync = [p \in Process |-> None]
  /\ born = 0
  /\ ref = [q \in Queue |-> IF Holds(q, First) THEN 1 ELSE 0]
  /\ new = [q \in Queue |-> None]
  /\ io = [q \in Queue |-> 0]
  /\ group = [q \in Queue |-> 0]
  /\ table = First
  /\ used = FALSE
  /\ last = [action |-> "Init"]

IsBorn(q) == Holds(q, table) \/ (q \in Own /\ q <= born)
Live(q) == IsBorn(q) /\ ref[q] > 0

(* The queues that are to be gone through from q on, q among them. *)
RECURSIVE Reach(_, _)
Reach(found, at) ==
  IF at = None \/ at \in found THEN found ELSE Reach(found \union {at}, new[at])
Chain(q) == Reach({}, q)
Behind(q) == Chain(q) \ {q}
RECURSIVE TailOf(_, _)
TailOf(q, left) == IF new[q] = None \/ left = 0 THEN q ELSE TailOf(new[q], left - 1)

(* Process references: slots, and reservations for those that are still to come. *)
Prefs(q) == ref[q] - io[q]

Minus(r, queues) == [q \in Queue |-> IF q \in queues THEN r[q] - 1 ELSE r[q]]
Plus(r, q, n) == [r EXCEPT ![q] = @ + n]

(* A freed queue keeps nothing. *)
Freed(r, q) == r[q] = 0
Forget(r) == new' = [q \in Queue |-> IF Freed(r, q) THEN None ELSE new[q]]

(* A process creates the next queue. *)
GroupOf(p) == ((p - 1) % Groups) + 1
Bear(p) == born' = born + 1 /\ group' = [group EXCEPT ![born + 1] = GroupOf(p)]

UseAfterFree ==
  /\ used' = TRUE
  /\ UNCHANGED <<todo, exited, slot, slotAsync, born, ref, new, io, group, table>>

(* All of `queues` are live in r, the counts of that moment. *)
AreLive(r, queues) == \A q \in queues : IsBorn(q) /\ r[q] > 0

-----------------------------------------------------------------------------
(* A process submits a request: cfq_set_request(). *)

MaySubmit(p) == ~used /\ p \notin exited /\ todo[p] > 0
Submitted(p) == todo' = [todo EXCEPT ![p] = @ - 1]

(* It gets a request of q, whose counts are r after the steps before. *)
Takes(p, q, r) ==
  /\ Submitted(p)
  /\ io' = [io EXCEPT ![q] = @ + 1]
  /\ ref' = Plus(r, q, 1)
  /\ Forget(ref')
  /\ UNCHANGED used

(* The first request, or the first after the fallback. *)
Create(p) ==
  /\ MaySubmit(p)
  /\ slot[p] \in {None, OomQueue}
  /\ born < Queues
  /\ Bear(p)
  /\ slot' = [slot EXCEPT ![p] = born + 1]
  /\ LET r == IF slot[p] # None /\ Oom = "put" THEN Minus(ref, {slot[p]}) ELSE ref
     IN  Takes(p, born + 1, Plus(r, born + 1, 1))
  /\ Say([action |-> "Create", process |-> p])
  /\ UNCHANGED <<exited, slotAsync, table>>

(* There is no memory for a queue. *)
Fallback(p) ==
  /\ MaySubmit(p)
  /\ Oom # "none"
  /\ slot[p] = None
  /\ slot' = [slot EXCEPT ![p] = OomQueue]
  /\ Takes(p, OomQueue, Plus(ref, OomQueue, 1))
  /\ Say([action |-> "Fallback", process |-> p])
  /\ UNCHANGED <<exited, slotAsync, born, group, table>>

Submit(p) ==
  LET q == slot[p] IN
  /\ MaySubmit(p)
  /\ q # None /\ q # OomQueue
  /\ new[q] = None
  /\ IF Live(q)
       THEN Takes(p, q, ref) /\ UNCHANGED <<exited, slot, slotAsync, born, group, table>>
       ELSE UseAfterFree
  /\ Say([action |-> "Submit", process |-> p])

(* One step along the redirection; the reference of the new slot was reserved. *)
Redirect(p) ==
  LET q == slot[p] n == new[slot[p]] IN
  /\ MaySubmit(p)
  /\ q # None
  /\ q # OomQueue
  /\ n # None
  /\ IF AreLive(ref, {q, n})
       THEN /\ slot' = [slot EXCEPT ![p] = n]
            /\ Takes(p, n, Minus(ref, {q}))
            /\ UNCHANGED <<exited, slotAsync, born, group, table>>
       ELSE UseAfterFree
  /\ Say([action |-> "Redirect", process |-> p])

(* The process leaves a queue that it shares: split_cfqq(). A queue that is not shared is kept. *)
Leave(p) ==
  LET q == slot[p]
      put == IF Split = "chain" THEN Chain(q) ELSE {q}
  IN
  /\ MaySubmit(p)
  /\ Split # "none"
  /\ q # None /\ q # OomQueue
  /\ Prefs(q) > 1
  /\ born < Queues
  /\ IF AreLive(ref, put)
       THEN /\ Bear(p)
            /\ slot' = [slot EXCEPT ![p] = born + 1]
            /\ Takes(p, born + 1, Plus(Minus(ref, put), born + 1, 1))
            /\ UNCHANGED <<exited, slotAsync, table>>
       ELSE UseAfterFree
  /\ Say([action |-> "Leave", process |-> p])

(* The same of asynchronous requests, whose queue all processes share: that of the table, or a new *)
(* one for it. The reference of a fallback is put as that of a synchronous one.                   *)
GetsAsync(p) == slotAsync[p] \in {None, OomQueue}
Shared == IF table = None THEN AsyncQueue ELSE table
PutFallback(p) ==
  IF slotAsync[p] = OomQueue /\ Oom = "put" THEN Minus(ref, {OomQueue}) ELSE ref

SubmitAsync(p) ==
  LET q == IF GetsAsync(p) THEN Shared ELSE slotAsync[p]
      filled == IF table = None THEN Plus(PutFallback(p), q, 1) ELSE PutFallback(p)
  IN
  /\ MaySubmit(p)
  /\ Async # "none"
  /\ IF GetsAsync(p) THEN TRUE ELSE new[q] = None
  /\ IF GetsAsync(p) /\ (table = None \/ Live(q))
       THEN /\ slotAsync' = [slotAsync EXCEPT ![p] = q]
            /\ table' = q
            /\ Takes(p, q, Plus(filled, q, 1))
            /\ UNCHANGED <<exited, slot, born, group>>
       ELSE IF ~GetsAsync(p) /\ Live(q)
       THEN Takes(p, q, ref) /\ UNCHANGED <<exited, slot, slotAsync, born, group, table>>
       ELSE UseAfterFree
  /\ Say([action |-> "SubmitAsync", process |-> p])

(* There is no memory for it. *)
FallbackAsync(p) ==
  LET kept == IF Table = "any" THEN 1 ELSE 0 IN
  /\ MaySubmit(p)
  /\ Async # "none"
  /\ Oom # "none"
  /\ slotAsync[p] = None
  /\ table = None
  /\ slotAsync' = [slotAsync EXCEPT ![p] = OomQueue]
  /\ table' = IF Table = "any" THEN OomQueue ELSE None
  /\ Takes(p, OomQueue, Plus(ref, OomQueue, 1 + kept))
  /\ Say([action |-> "FallbackAsync", process |-> p])
  /\ UNCHANGED <<exited, slot, born, group>>

RedirectAsync(p) ==
  LET q == slotAsync[p] n == new[slotAsync[p]] IN
  /\ MaySubmit(p)
  /\ q # None /\ q # OomQueue
  /\ n # None
  /\ IF AreLive(ref, {q, n})
       THEN /\ slotAsync' = [slotAsync EXCEPT ![p] = n]
            /\ Takes(p, n, Minus(ref, {q}))
            /\ UNCHANGED <<exited, slot, born, group, table>>
       ELSE UseAfterFree
  /\ Say([action |-> "RedirectAsync", process |-> p])

-----------------------------------------------------------------------------
(* What else happens to a queue. *)

(* A request ends: cfq_put_request(). *)
Complete(q) ==
  /\ ~used
  /\ io[q] > 0
  /\ IF Live(q)
       THEN /\ io' = [io EXCEPT ![q] = @ - 1]
            /\ ref' = Minus(ref, {q})
            /\ Forget(ref')
            /\ UNCHANGED <<todo, exited, slot, slotAsync, born, group, table, used>>
       ELSE UseAfterFree
  /\ Say([action |-> "Complete", queue |-> q])

(* What a process has of a queue when it exits: a reference on each queue of the chain. *)
Dropped(q) == IF q = None THEN {} ELSE Chain(q)

Exit(p) ==
  LET first == Dropped(slot[p])
      second == Dropped(slotAsync[p])
      between == Minus(ref, first)
  IN
  /\ ~used
  /\ p \notin exited
  /\ IF AreLive(ref, first) /\ AreLive(between, second)
       THEN /\ exited' = exited \union {p}
            /\ slot' = [slot EXCEPT ![p] = None]
            /\ slotAsync' = [slotAsync EXCEPT ![p] = None]
            /\ todo' = [todo EXCEPT ![p] = 0]
            /\ ref' = Minus(between, second)
            /\ Forget(ref')
            /\ UNCHANGED <<born, io, group, table, used>>
       ELSE UseAfterFree
  /\ Say([action |-> "Exit", process |-> p])

(* A process comes into another group: changed_cgroup(). *)
Move(p) ==
  LET q == slot[p]
      put == IF Regroup = "chain" THEN Chain(q) ELSE {q}
  IN
  /\ ~used
  /\ Regroup # "none"
  /\ p \notin exited
  /\ q # None
  /\ IF AreLive(ref, put)
       THEN /\ slot' = [slot EXCEPT ![p] = None]
            /\ ref' = Minus(ref, put)
            /\ Forget(ref')
            /\ UNCHANGED <<todo, exited, slotAsync, born, io, group, table, used>>
       ELSE UseAfterFree
  /\ Say([action |-> "Move", process |-> p])

(* The active queue c finds n close: cfq_setup_merge(). What it may come to. *)
Merged(c, n) ==
  LET tail == TailOf(n, Queues)
      gives == Prefs(c)
      gets == Prefs(tail)
      no == ZeroChecks /\ (Prefs(n) = 0 \/ gets = 0)
      back == Direction /\ gets < gives
  IN
  IF tail = c \/ gives = 0 \/ no
    THEN UNCHANGED <<ref, new>>
    ELSE IF back
    THEN /\ new' = [new EXCEPT ![tail] = c]
         /\ ref' = Plus(ref, c, gets)
    ELSE /\ new' = [new EXCEPT ![c] = tail]
         /\ ref' = Plus(ref, tail, gives)

(* What the walk from n reads. *)
Walked(n) == IF ZeroChecks /\ Prefs(n) = 0 THEN {n} ELSE Chain(n)

Currents == IF Async = "current" THEN Own \union {AsyncQueue} ELSE Own

Merge(c, n) ==
  /\ ~used
  /\ c # n
  /\ c \in Currents
  /\ n \in Own
  /\ Live(c)
  /\ Live(n)
  /\ io[n] > 0
  /\ new[c] = None
  /\ IF SameGroup THEN group[c] = group[n] ELSE TRUE
  /\ IF AreLive(ref, Walked(n))
       THEN Merged(c, n) /\ UNCHANGED <<todo, exited, slot, slotAsync, born, io, group, table, used>>
       ELSE UseAfterFree
  /\ Say([action |-> "Merge", current |-> c, close |-> n])

-----------------------------------------------------------------------------
Next ==
  \/ (\E p \in Process : Create(p))
  \/ (\E p \in Process : Fallback(p))
  \/ (\E p \in Process : Submit(p))
  \/ (\E p \in Process : Redirect(p))
  \/ (\E p \in Process : Leave(p))
  \/ (\E p \in Process : SubmitAsync(p))
  \/ (\E p \in Process : FallbackAsync(p))
  \/ (\E p \in Process : RedirectAsync(p))
  \/ (\E q \in Queue : Complete(q))
  \/ (\E p \in Process : Exit(p))
  \/ (\E p \in Process : Move(p))
  \/ (\E c, n \in Queue : Merge(c, n))

Spec == Init /\ [][Next]_vars

(* Nobody reads or writes a freed queue (I1). *)
LiveDeref == ~used

(* Every reference has a holder: a slot, one of a process that is still to come along the chain, *)
(* a request's, or the pin (I2). With it reservations are exact, too (I3).                         *)
Holders(q) ==
  Cardinality({p \in Process : slot[p] # None /\ q \in Chain(slot[p])})
    + Cardinality({p \in Process : slotAsync[p] # None /\ q \in Chain(slotAsync[p])})
Pins(q) == (IF Oom # "none" /\ q = OomQueue THEN 1 ELSE 0) + (IF q = table THEN 1 ELSE 0)
RefExact ==
  \A q \in Queue :
    IsBorn(q) => ref[q] = Holders(q) + io[q] + Pins(q)

NoNegative == \A q \in Queue : ref[q] > 0 => Prefs(q) >= 0

(* From a queue with process references the redirections end (I4). *)
RECURSIVE Ends(_, _)
Ends(q, left) == new[q] = None \/ (left > 0 /\ Ends(new[q], left - 1))
Acyclic == \A q \in Queue : (ref[q] > 0 /\ Prefs(q) > 0) => Ends(q, Queues + 1)

(* Requests of a group stay in it (I7). *)
SameParent ==
  \A q \in Own : (ref[q] > 0 /\ new[q] \in Own /\ Prefs(q) > 0) => group[q] = group[new[q]]

(* Everybody has exited and nothing is under way: only pinned queues are left (I5). *)
Quiet == exited = Process /\ (\A q \in Queue : io[q] = 0)
NoLeak == (Quiet /\ ~used) => (\A q \in Own : ref[q] = 0)

(* The fallback is for want of memory, not for ever. *)
FallbackAside == Oom = "none" \/ table # OomQueue

(* What schedules and traces show of a state. *)
Observed ==
  [slot |-> slot, slotAsync |-> slotAsync, born |-> born, ref |-> ref, new |-> new, io |-> io,
   table |-> table, used |-> used]

(* To be violated: shows that two processes can end well. *)
NeverAllDone == ~(Quiet /\ born > 1 /\ ~used /\ \A q \in Own : ref[q] = 0)
=============================================================================
