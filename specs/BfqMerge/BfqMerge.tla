------------------------------ MODULE BfqMerge -------------------------------
(***************************************************************************)
(* BFQ: queues of processes become one when they work on one region, at    *)
(* once or later when they were created together, and fall apart again.    *)
(* Everything here happens under bfqd->lock, so one step is one critical   *)
(* section or a part of one; what is in question is whether the references *)
(* are right. Times, priorities, rates and closeness are free choices.     *)
(*                                                                         *)
(* A step that would read or write a freed queue sets `used` and leaves    *)
(* all queues as they are, and nothing follows. Numbers of queues are given out in   *)
(* order and never again. Queues are never busy here: references of        *)
(* service and of weight counters are those of another protocol.           *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Processes,     \* number of processes
  Queues,        \* number of queues that can be created
  Requests,      \* requests that each process submits, one after another
  Groups,        \* number of groups: processes begin in the first
  Stable,        \* queues created together: merged "later", "early" (at creation), or "never"
  Cancel,        \* a process that gets to its candidate by other means drops it
  PlannedFirst,  \* a redirection that is there is taken, whatever candidate there is
  Follow,        \* it is followed by one "link", to the "tail" link by link, or by a "jump" there
  KeepsPlanned,  \* a queue with a redirection is kept in a split
  OwnsPlanned,   \* a queue with a redirection can have an owner, too
  SameGroup,     \* no merge across groups
  Counted,       \* process references are counted before the candidate's reference is put
  Detach,        \* a slot that changes clears the owner: "never", "first", "late" (after the put)
  MoveClears,    \* a queue that changes its group is no longer the last created of the old one
  PutsReplaced,  \* a candidate that takes another one's place puts that one's reference
  NotesShort,    \* remember in `short` that a redirection ended where another one goes on
  IdleClose,     \* a queue that is merged into may have no request: it is served, and waited for
  Carries,       \* the request of a process that goes elsewhere may follow it
  Record         \* remember the last step in `last`

ASSUME /\ {Processes, Queues, Requests, Groups} \subseteq Nat \ {0}
       /\ Stable \in {"later", "early", "never"}
       /\ Follow \in {"link", "tail", "jump"}
       /\ Detach \in {"never", "first", "late"}
       /\ {Cancel, PlannedFirst, KeepsPlanned, OwnsPlanned, SameGroup, Counted, MoveClears, Record}
            \subseteq BOOLEAN
       /\ {PutsReplaced, NotesShort, IdleClose, Carries} \subseteq BOOLEAN

Process == 1..Processes
Queue == 1..Queues
Group == 1..Groups
None == 0

VARIABLES
  todo,       \* process: requests that it has not submitted yet
  exited,     \* processes that have exited
  in,         \* process: its group
  slot,       \* process: its queue
  candidate,  \* process: the queue that it is to be merged into later
  stably,     \* processes that have been merged for good
  born,       \* queues that were created
  ref,        \* queue: its references as the kernel counts them; a born one without is freed
  stable,     \* queue: of them, those of processes that it is the candidate of
  new,        \* queue: the one that its processes are to go to
  io,         \* queue: its requests, from allocation to completion
  shared,     \* queues that were merged into
  owner,      \* queue: the one process whose queue it is
  group,      \* queue: where it is served
  created,    \* group: the last queue created; no reference
  short,      \* a process was redirected to a queue that is to be left itself
  used,       \* a freed queue was read or written
  last        \* the last step and its arguments; no step reads it, the view leaves it out

view == <<todo, exited, in, slot, candidate, stably, born, ref, stable, new, io, shared, owner, group,
          created, short, used>>
vars == <<view, last>>
Say(step) == last' = IF Record THEN step ELSE last

Init ==
  /\ todo = [p \in Process |-> Requests]
  /\ exited = {}
  /\ in = [p \in Process |-> 1]
  /\ slot = [p \in Process |-> None]
  /\ candidate = [p \in Process |-> None]
  /\ stably = {}
  /\ born = 0
  /\ ref = [q \in Queue |-> 0]
  /\ stable = [q \in Queue |-> 0]
  /\ new = [q \in Queue |-> None]
  /\ io = [q \in Queue |-> 0]
  /\ shared = {}
  /\ owner = [q \in Queue |-> None]
  /\ group = [q \in Queue |-> 0]
  /\ created = [g \in Group |-> None]
  /\ short = FALSE
  /\ used = FALSE
  /\ last = [action |-> "Init"]

-----------------------------------------------------------------------------
(* What the functions under the lock do to a state s; ~s.ok: a freed queue was used. *)

Now ==
  [slot |-> slot, candidate |-> candidate, stably |-> stably, ref |-> ref, stable |-> stable,
   new |-> new, io |-> io, shared |-> shared, owner |-> owner, group |-> group,
   created |-> created, ok |-> TRUE]

Becomes(s) ==
  IF s.ok
    THEN /\ slot' = s.slot
         /\ candidate' = s.candidate
         /\ stably' = s.stably
         /\ ref' = s.ref
         /\ stable' = s.stable
         /\ new' = s.new
         /\ io' = s.io
         /\ shared' = s.shared
         /\ owner' = s.owner
         /\ group' = s.group
         /\ created' = s.created
         /\ UNCHANGED used
    ELSE /\ used' = TRUE
         /\ UNCHANGED <<slot, candidate, stably, ref, stable, new, io, shared, owner, group, created>>

Fails(s) == [s EXCEPT !.ok = FALSE]
Touch(s, q) == IF s.ref[q] > 0 THEN s ELSE Fails(s)

(* References of processes: slots, and reservations for those that are still to come. *)
Prefs(s, q) == s.ref[q] - s.io[q] - s.stable[q]

Get(s, q) == [s EXCEPT !.ref[q] = @ + 1]

(* bfq_put_queue(). A freed queue keeps nothing. *)
Put(s, q) ==
  IF ~s.ok \/ s.ref[q] <= 0 THEN Fails(s)
  ELSE IF s.ref[q] > 1 THEN [s EXCEPT !.ref[q] = @ - 1]
  ELSE [s EXCEPT !.ref[q] = 0, !.stable[q] = 0, !.new[q] = None, !.shared = @ \ {q},
                 !.owner[q] = None, !.group[q] = 0]

(* bfq_put_stable_ref() *)
PutStable(s, q) == IF s.ref[q] <= 0 THEN Fails(s) ELSE Put([s EXCEPT !.stable[q] = @ - 1], q)

(* The last one created is cleared or replaced: bfq_reassign_last_bfqq(). *)
Reassign(s, q, to) ==
  IF s.ref[q] > 0 /\ s.created[s.group[q]] = q THEN [s EXCEPT !.created[s.group[q]] = to] ELSE s

(* bfq_release_process_ref() *)
Release(s, q) == Put(Reassign(s, q, None), q)

(* One reference on each queue after q in its chain: bfq_put_cooperator(). *)
RECURSIVE PutFrom(_, _, _)
PutFrom(s, at, q) ==
  IF at = None \/ at = q \/ ~s.ok THEN s
  ELSE IF s.ref[at] <= 0 THEN Fails(s)
  ELSE PutFrom(Put(s, at), s.new[at], q)
PutChain(s, q) == PutFrom(s, s.new[q], q)

(* bic_set_bfqq() *)
Disown(s, p) ==
  LET q == s.slot[p] IN
  IF Detach = "never" \/ q = None THEN s
  ELSE IF s.ref[q] <= 0 THEN Fails(s)
  ELSE IF s.owner[q] = p THEN [s EXCEPT !.owner[q] = None] ELSE s
SetSlot(s, p, to) ==
  LET placed == [Disown(s, p) EXCEPT !.slot[p] = to] IN
  IF Cancel /\ to # None /\ s.candidate[p] = to
    THEN PutStable([placed EXCEPT !.candidate[p] = None], to)
    ELSE placed

(* A process leaves q, whose slot is to be empty. *)
Drop(s, p, q) ==
  IF Detach = "late" THEN SetSlot(Release(PutChain(s, q), q), p, None)
  ELSE Release(PutChain(SetSlot(s, p, None), q), q)

(* What bfq_setup_merge() answers. *)
RECURSIVE TailFrom(_, _, _)
TailFrom(s, q, left) == IF s.new[q] = None \/ left = 0 THEN q ELSE TailFrom(s, s.new[q], left - 1)
TailOf(s, q) == TailFrom(s, q, Queues)
RECURSIVE Reach(_, _, _)
Reach(s, found, at) ==
  IF at = None \/ at \in found THEN found ELSE Reach(s, found \union {at}, s.new[at])
Chain(s, q) == Reach(s, {}, q)

Walked(s, n) == IF Prefs(s, n) = 0 THEN {n} ELSE Chain(s, n)
MayMerge(s, q, n) ==
  /\ Prefs(s, n) # 0
  /\ n = q \/ q \notin Chain(s, n)
  /\ Prefs(s, q) # 0
  /\ Prefs(s, TailOf(s, n)) # 0
  /\ SameGroup => s.group[TailOf(s, n)] = s.group[q]
Planned(s, q, n) ==
  LET tail == TailOf(s, n) IN
  [s EXCEPT !.new[q] = tail, !.ref[tail] = @ + Prefs(s, q)]

(* A process leaves q for the queue that is planned: bfq_merge_bfqqs(). *)
Merging(s, p, q) ==
  LET n == s.new[q]
      moved == SetSlot(s, p, n)
      mine == [moved EXCEPT !.shared = @ \union {n}, !.owner[n] = None, !.owner[q] = None]
  IN
  IF ~s.ok \/ s.ref[q] <= 0 \/ s.ref[n] <= 0 THEN Fails(s)
  ELSE Release(Reassign(mine, q, n), q)

(* From q on, link by link. *)
RECURSIVE MoveTo(_, _, _, _)
MoveTo(s, p, q, to) ==
  IF ~s.ok \/ q = to THEN s ELSE MoveTo(Merging(s, p, q), p, s.new[q], to)

(* Both processes are merged for good. *)
ForGood(s, p, n) ==
  [s EXCEPT !.stably = @ \union {p} \union (IF s.owner[n] = None THEN {} ELSE {s.owner[n]})]

-----------------------------------------------------------------------------
(* A process gets a queue: bfq_get_queue(). *)

MayCreate(p) == ~used /\ p \notin exited /\ todo[p] > 0 /\ slot[p] = None /\ born < Queues
Born(s, p) == [s EXCEPT !.ref[born + 1] = 1, !.group[born + 1] = in[p]]
Gets(p, s, q) == SetSlot(s, p, q)
Creates(p) == born' = born + 1 /\ UNCHANGED <<todo, exited, in, short>>
Recent(p) == created[in[p]]

(* It is the last one created from now on: there is none, or too old a one. *)
CreateLast(p) ==
  /\ MayCreate(p)
  /\ Becomes(Gets(p, [Born(Now, p) EXCEPT !.created[in[p]] = born + 1], born + 1))
  /\ Creates(p)
  /\ Say([action |-> "CreateLast", process |-> p])

(* It comes neither soon after the last one nor late. *)
Create(p) ==
  /\ MayCreate(p)
  /\ Stable # "never"
  /\ Recent(p) # None
  /\ Becomes(Gets(p, Touch(Born(Now, p), Recent(p)), born + 1))
  /\ Creates(p)
  /\ Say([action |-> "Create", process |-> p])

(* It is to be merged into the last one later. *)
CreateLater(p) ==
  LET c == Recent(p)
      s == Touch(Born(Now, p), c)
      planned == [s EXCEPT !.ref[c] = @ + 1, !.stable[c] = @ + 1, !.candidate[p] = c]
      before == candidate[p]
      replaced == IF PutsReplaced /\ before # None THEN PutStable(planned, before) ELSE planned
  IN
  /\ MayCreate(p)
  /\ Stable = "later"
  /\ c # None
  /\ Becomes(Gets(p, IF s.ok THEN replaced ELSE s, born + 1))
  /\ Creates(p)
  /\ Say([action |-> "CreateLater", process |-> p])

(* It is merged into the last one before it is used. *)
CreateMerged(p) ==
  LET c == Recent(p)
      q == born + 1
      s == Touch(Born(Now, p), c)
      tail == TailOf(s, c)
      merged == Merging([ForGood(Planned(s, q, c), p, tail) EXCEPT !.owner[q] = p], p, q)
  IN
  /\ MayCreate(p)
  /\ Stable = "early"
  /\ c # None
  /\ Becomes(IF \E x \in Walked(s, c) : s.ref[x] <= 0 THEN Fails(s)
             ELSE IF MayMerge(s, q, c) THEN Gets(p, merged, tail)
             ELSE Gets(p, s, q))
  /\ Creates(p)
  /\ Say([action |-> "CreateMerged", process |-> p])

-----------------------------------------------------------------------------
(* A request or a bio of a process with a queue. *)

Has(p) == ~used /\ p \notin exited /\ slot[p] # None

(* A request is allocated: the end of bfq_init_rq(). *)
Submit(p) ==
  LET q == slot[p]
      s == [Touch(Now, q) EXCEPT !.io[q] = @ + 1, !.ref[q] = @ + 1]
      own == Prefs(s, q) = 1 /\ (OwnsPlanned \/ new[q] = None)
  IN
  /\ Has(p)
  /\ todo[p] > 0
  /\ todo' = [todo EXCEPT ![p] = @ - 1]
  /\ Becomes(IF own THEN [s EXCEPT !.owner[q] = p] ELSE s)
  /\ Say([action |-> "Submit", process |-> p])
  /\ UNCHANGED <<exited, in, born, short>>

Complete(q) ==
  /\ ~used
  /\ io[q] > 0
  /\ Becomes(Put([Now EXCEPT !.io[q] = @ - 1], q))
  /\ Say([action |-> "Complete", queue |-> q])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* The redirection that is there is taken. *)
Redirect(p) ==
  LET q == slot[p]
      s == Touch(Now, q)
      tail == TailOf(s, q)
      jumped == [SetSlot(s, p, tail) EXCEPT !.shared = @ \union {tail}, !.owner[tail] = None,
                                            !.owner[q] = None]
  IN
  /\ Has(p)
  /\ new[q] # None
  /\ new[q] # q
  /\ Becomes(CASE Follow = "link" -> Merging(s, p, q)
               [] Follow = "tail" -> MoveTo(s, p, q, tail)
               [] Follow = "jump" -> Release(Reassign(jumped, q, tail), q))
  /\ Say([action |-> "Redirect", process |-> p])
  /\ short' = (short \/ (NotesShort /\ ~used' /\ new'[slot'[p]] # None))
  /\ UNCHANGED <<todo, exited, in, born>>

(* The request with which a process has just gone elsewhere goes along: __bfq_insert_request(). *)
Carry(p, q) ==
  LET to == slot[p]
      s == Touch(Now, to)
  IN
  /\ Carries
  /\ Has(p)
  /\ q # to
  /\ io[q] > 0
  /\ to \in Chain(Now, q)
  /\ Becomes(Put([s EXCEPT !.io[q] = @ - 1, !.io[to] = @ + 1, !.ref[to] = @ + 1], q))
  /\ Say([action |-> "Carry", process |-> p, queue |-> q])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* A queue with a request is close: a merge is planned, and the process goes there. *)
Merge(p, n) ==
  LET q == slot[p]
      s == Touch(Now, q)
  IN
  /\ Has(p)
  /\ new[q] = None
  /\ n # q
  /\ IF IdleClose THEN ref[n] > 0 ELSE io[n] > 0
  /\ Becomes(IF ~s.ok \/ \E x \in Walked(s, n) : s.ref[x] <= 0 THEN Fails(s)
             ELSE IF MayMerge(s, q, n) THEN MoveTo(Planned(s, q, n), p, q, TailOf(s, n))
             ELSE s)
  /\ Say([action |-> "Merge", process |-> p, close |-> n])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* The time of the candidate has come: bfq_setup_stable_merge(). *)
Due(p) ==
  /\ Has(p)
  /\ candidate[p] # None
  /\ IF PlannedFirst THEN new[slot[p]] = None ELSE TRUE
PutsCandidate(s, p) == PutStable([s EXCEPT !.candidate[p] = None], s.candidate[p])

MergeLater(p) ==
  LET q == slot[p]
      c == candidate[p]
      s == PutsCandidate(Touch(Now, q), p)
      counted == IF Counted THEN Prefs(Now, q) > 0 /\ Prefs(Now, c) > 0
                 ELSE Prefs(s, q) > 0 /\ Prefs(s, c) > 0
      read == IF Counted THEN {} ELSE {c}
  IN
  /\ Due(p)
  /\ Becomes(IF ~s.ok \/ \E x \in read : s.ref[x] <= 0 THEN Fails(s)
             ELSE IF ~counted THEN s
             ELSE IF \E x \in Walked(s, c) : s.ref[x] <= 0 THEN Fails(s)
             ELSE IF MayMerge(s, q, c)
             THEN MoveTo(ForGood(Planned(s, q, c), p, TailOf(s, c)), p, q, TailOf(s, c))
             ELSE s)
  /\ Say([action |-> "MergeLater", process |-> p])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* The same where idling serves the process better. *)
Abort(p) ==
  /\ Due(p)
  /\ Becomes(PutsCandidate(Touch(Now, slot[p]), p))
  /\ Say([action |-> "Abort", process |-> p])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* bfq_split_bfqq(): a process that shares a queue leaves it, ... *)
MaySplit(p) == Has(p) /\ slot[p] \in shared /\ p \notin stably
IsAlone(p) == Prefs(Now, slot[p]) = 1 /\ (IF KeepsPlanned THEN TRUE ELSE new[slot[p]] = None)

Leave(p) ==
  LET left == Drop(Touch(Now, slot[p]), p, slot[p]) IN
  /\ MaySplit(p)
  /\ ~IsAlone(p)
  /\ born < Queues
  /\ Becomes(IF left.ok THEN Gets(p, Born(left, p), born + 1) ELSE left)
  /\ Creates(p)
  /\ Say([action |-> "Leave", process |-> p])

(* ... and the only process of a queue keeps it. Its request is the next step. *)
Keep(p) ==
  /\ MaySplit(p)
  /\ IsAlone(p)
  /\ Becomes([Touch(Now, slot[p]) EXCEPT !.shared = @ \ {slot[p]}])
  /\ Say([action |-> "Keep", process |-> p])
  /\ UNCHANGED <<todo, exited, in, born, short>>

(* bfq_exit_icq() *)
Exit(p) ==
  LET first == IF candidate[p] = None THEN Now ELSE PutsCandidate(Now, p)
      q == slot[p]
  IN
  /\ ~used
  /\ p \notin exited
  /\ exited' = exited \union {p}
  /\ todo' = [todo EXCEPT ![p] = 0]
  /\ Becomes([IF q = None THEN first ELSE Drop(Touch(first, q), p, q)
                EXCEPT !.stably = @ \ {p}])
  /\ Say([action |-> "Exit", process |-> p])
  /\ UNCHANGED <<in, born, short>>

(* The process is in another group: bfq_bic_update_cgroup(). Its own queue goes with it; one that *)
(* it shares, or is to leave, it leaves unless all of the chain is there already.                  *)
Move(p, g) ==
  LET q == slot[p]
      own == new[q] = None /\ q \notin shared
      forgot == IF MoveClears THEN Reassign(Now, q, None) ELSE Now
      there == \A x \in Chain(Now, q) : group[x] = g
  IN
  /\ ~used
  /\ p \notin exited
  /\ g # in[p]
  /\ in' = [in EXCEPT ![p] = g]
  /\ Becomes(IF q = None THEN Now
             ELSE IF ref[q] <= 0 THEN Fails(Now)
             ELSE IF own
             THEN IF group[q] = g THEN Now ELSE [forgot EXCEPT !.group[q] = g]
             ELSE IF there THEN Now ELSE Drop(Now, p, q))
  /\ Say([action |-> "Move", process |-> p, group |-> g])
  /\ UNCHANGED <<todo, exited, born, short>>

-----------------------------------------------------------------------------
Next ==
  \/ (\E p \in Process : CreateLast(p))
  \/ (\E p \in Process : Create(p))
  \/ (\E p \in Process : CreateLater(p))
  \/ (\E p \in Process : CreateMerged(p))
  \/ (\E p \in Process : Submit(p))
  \/ (\E q \in Queue : Complete(q))
  \/ (\E p \in Process : Redirect(p))
  \/ (\E p \in Process, q \in Queue : Carry(p, q))
  \/ (\E p \in Process, n \in Queue : Merge(p, n))
  \/ (\E p \in Process : MergeLater(p))
  \/ (\E p \in Process : Abort(p))
  \/ (\E p \in Process : Leave(p))
  \/ (\E p \in Process : Keep(p))
  \/ (\E p \in Process : Exit(p))
  \/ (\E p \in Process, g \in Group : Move(p, g))

Spec == Init /\ [][Next]_vars

(* Nobody reads or writes a freed queue (I1). *)
LiveDeref == ~used

(* Every reference has a holder: a slot, one of a process that is still to come along the chain, *)
(* a request's, or a candidate's (I2). With it reservations are exact, too (I3).                   *)
Holders(q) == Cardinality({p \in Process : slot[p] # None /\ q \in Chain(Now, slot[p])})
Waiting(q) == Cardinality({p \in Process : candidate[p] = q})
RefExact ==
  \A q \in Queue :
    /\ ref[q] = Holders(q) + io[q] + Waiting(q)
    /\ stable[q] = Waiting(q)

(* No queue is merged with itself, and from a queue with process references the redirections end   *)
(* (I4).                                                                                           *)
RECURSIVE Ends(_, _)
Ends(q, left) == new[q] = None \/ (left > 0 /\ Ends(new[q], left - 1))
Acyclic == \A q \in Queue : Ends(q, Queues)

NoNegative == \A q \in Queue : ref[q] > 0 => Prefs(Now, q) >= 0

(* Everybody has exited and nothing is under way: no queue is left (I5). *)
Quiet == exited = Process /\ (\A q \in Queue : io[q] = 0)
NoLeak == (Quiet /\ ~used) => (\A q \in Queue : ref[q] = 0)

(* A queue's own process has it in its slot (I6), and is not to leave it. *)
OwnerValid == \A q \in Queue : owner[q] # None => slot[owner[q]] = q
OwnedUnplanned == \A q \in Queue : owner[q] # None => new[q] = None

(* Who is kept by a process alone has no plan to go elsewhere. *)
PlannedShared ==
  \A q \in Queue : (new[q] # None /\ Prefs(Now, q) > 0) => q \in shared

(* A redirection goes on to the end. *)
RedirectedWhole == ~short

(* Requests of a group stay in it (I7). *)
SameParent ==
  \A q \in Queue : (new[q] # None /\ Prefs(Now, q) > 0) => group[q] = group[new[q]]

(* Who is remembered without a reference is there. *)
CreatedLive == \A g \in Group : created[g] # None => ref[created[g]] > 0

(* What schedules and traces show of a state. *)
Observed ==
  [slot |-> slot, candidate |-> candidate, born |-> born, ref |-> ref, stable |-> stable,
   new |-> new, io |-> io, owner |-> owner, created |-> created, used |-> used]

(* To be violated: shows that two processes can end well. *)
NeverAllDone == ~(Quiet /\ born > 1 /\ ~used /\ \A q \in Queue : ref[q] = 0)
=============================================================================
