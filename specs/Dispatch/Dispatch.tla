------------------------------ MODULE Dispatch -------------------------------
(***************************************************************************)
(* mq-deadline as the January 2024 series would have it: one CPU           *)
(* dispatches at a time (DD_DISPATCHING), and a CPU without dd->lock       *)
(* leaves its requests in a bucket for the CPU that inserts. Which of      *)
(* these protocols leave a request for ever?                               *)
(*                                                                         *)
(* One step is one access to a bit, counter, bucket, list or lock. Memory  *)
(* is sequentially consistent: barriers are the subject of                 *)
(* crates/blkmq/tests/loom.rs. Actions bear the names of the labels in     *)
(* crates/blkmq/src/path (README.md).                                      *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Cpus,        \* number of CPUs that submit, each with a bucket of its own
  PerCpu,      \* requests that each submits, one after another
  Insertion,   \* "lock" "poc" "v1" "v2" "repaired" "lists"
  Gating,      \* DD_DISPATCHING: "none", cleared "inside" or "after" the lock's section
  SeesSide,    \* has_work looks into buckets and side lists as well
  Reruns,      \* a completion runs the queue
  Delayed,     \* a run that got nothing arms a delayed run
  Record       \* remember the last step in `last`

ASSUME /\ Cpus \in Nat \ {0}
       /\ PerCpu \in Nat \ {0}
       /\ Insertion \in {"lock", "poc", "v1", "v2", "repaired", "lists"}
       /\ Gating \in {"none", "inside", "after"}
       /\ {SeesSide, Reruns, Delayed, Record} \subseteq BOOLEAN

Cpu == 1..Cpus
Completer == Cpus + 1
Runner == Cpus + 2
Process == 1..(Cpus + 2)
Nobody == 0
Request == 1..(Cpus * PerCpu)

VARIABLES
  todo,         \* CPU: requests that it has not submitted yet
  owner,        \* owner of dd->lock
  queued,       \* requests in the scheduler, in order
  bucket,       \* CPU: requests in its bucket
  side,         \* requests on the side list
  sideOwner,    \* owner of insert_lock
  dispatching, inserting, buckets,   \* the bits
  seq,          \* insert_seq
  device,       \* requests in flight
  done,         \* requests that ended
  armed,        \* the delayed run waits for its time
  proc,         \* process: where it is and what it holds
  last          \* the last step and its arguments; no step reads it, the view leaves it out

view == <<todo, owner, queued, bucket, side, sideOwner, dispatching, inserting, buckets, seq, device,
          done, armed, proc>>
vars == <<view, last>>
Say(step) == last' = IF Record THEN step ELSE last

(* `list`: what is to be inserted. `got`: what was picked. `seen`: insert_seq as it knows it.     *)
(* `look`: the bucket that is looked at. `filled`: buckets first. What no later step reads is     *)
(* reset.                                                                                         *)
Idle == [at |-> "Idle", list |-> <<>>, got |-> <<>>, seen |-> 0, look |-> 0, filled |-> FALSE]

Init ==
  /\ todo = [c \in Cpu |-> PerCpu]
  /\ owner = Nobody
  /\ queued = <<>>
  /\ bucket = [c \in Cpu |-> <<>>]
  /\ side = <<>>
  /\ sideOwner = Nobody
  /\ dispatching = FALSE
  /\ inserting = FALSE
  /\ buckets = FALSE
  /\ seq = 0
  /\ device = {}
  /\ done = {}
  /\ armed = FALSE
  /\ proc = [p \in Process |-> Idle]
  /\ last = [action |-> "Init"]

At(p, at) == proc[p].at = at
Put(p, new) == proc' = [proc EXCEPT ![p] = new]
Go(p, at) == proc' = [proc EXCEPT ![p].at = at]
bits == <<dispatching, inserting, buckets, seq>>
lists == <<queued, bucket, side>>
locks == <<owner, sideOwner>>
ends == <<device, done, armed>>

(* Behind an insertion the submitter runs the queue. *)
RunsNow == [Idle EXCEPT !.at = "HasWork"]

-----------------------------------------------------------------------------
(* Insertion, until the requests are in a bucket or the process has dd->lock. *)

Submit(p) ==
  /\ p \in Cpu
  /\ At(p, "Idle")
  /\ todo[p] > 0
  /\ todo' = [todo EXCEPT ![p] = @ - 1]
  /\ Put(p, [Idle EXCEPT !.list = <<(p - 1) * PerCpu + (PerCpu - todo[p] + 1)>>,
                         !.at = CASE Insertion \in {"poc", "v1"} -> "Note"
                                  [] Insertion = "lock" -> "Lock"
                                  [] Insertion = "lists" -> "SideLock"
                                  [] OTHER -> "TryLock"])
  /\ Say([action |-> "Submit", process |-> p])
  /\ UNCHANGED <<locks, lists, bits, ends>>

SideLock(p) ==
  /\ At(p, "SideLock")
  /\ sideOwner = Nobody
  /\ sideOwner' = p
  /\ Go(p, "AppendSide")
  /\ Say([action |-> "SideLock", process |-> p])
  /\ UNCHANGED <<todo, owner, lists, bits, ends>>

AppendSide(p) ==
  /\ At(p, "AppendSide")
  /\ side' = side \o proc[p].list
  /\ Put(p, [Idle EXCEPT !.at = "SideUnlock"])
  /\ Say([action |-> "AppendSide", process |-> p])
  /\ UNCHANGED <<todo, locks, queued, bucket, bits, ends>>

SideUnlock(p) ==
  /\ At(p, "SideUnlock")
  /\ sideOwner' = Nobody
  /\ Put(p, RunsNow)
  /\ Say([action |-> "SideUnlock", process |-> p])
  /\ UNCHANGED <<todo, owner, lists, bits, ends>>

Note(p) ==
  /\ At(p, "Note")
  /\ seq' = IF Insertion = "poc" THEN seq + 1 ELSE seq
  /\ Put(p, [proc[p] EXCEPT !.at = "TryLock", !.seen = seq'])
  /\ Say([action |-> "Note", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, buckets, ends>>

TryLock(p) ==
  /\ At(p, "TryLock")
  /\ IF owner = Nobody
       THEN owner' = p /\ Go(p, "Begin")
       ELSE owner' = owner /\ Go(p, "Busy")
  /\ Say([action |-> "TryLock", process |-> p])
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends>>

Busy(p) ==
  /\ At(p, "Busy")
  /\ Go(p, IF ~inserting THEN "Lock"
           ELSE CASE Insertion = "v1" -> "Count"
                  [] Insertion = "v2" -> "Marked"
                  [] OTHER -> "Fill")
  /\ Say([action |-> "Busy", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

Count(p) ==
  /\ At(p, "Count")
  /\ seq' = seq + 1
  /\ Put(p, [proc[p] EXCEPT !.at = "Fill", !.seen = seq'])
  /\ Say([action |-> "Count", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, buckets, ends>>

Marked(p) ==
  /\ At(p, "Marked")
  /\ Go(p, IF buckets THEN "Fill" ELSE "Mark")
  /\ Say([action |-> "Marked", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

Mark(p) ==
  /\ At(p, "Mark")
  /\ buckets' = TRUE
  /\ Go(p, IF Insertion = "v2" THEN "Fill" ELSE "Still")
  /\ Say([action |-> "Mark", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, seq, ends>>

Fill(p) ==
  /\ At(p, "Fill")
  /\ bucket' = [bucket EXCEPT ![p] = @ \o proc[p].list]
  /\ Put(p, [Idle EXCEPT !.seen = IF Insertion = "v2" \/ Insertion = "repaired"
                                    THEN 0 ELSE proc[p].seen,
                         !.at = CASE Insertion = "v1" -> "Recount"
                                  [] Insertion = "repaired" -> "Mark"
                                  [] OTHER -> "Still"])
  /\ Say([action |-> "Fill", process |-> p])
  /\ UNCHANGED <<todo, locks, queued, side, bits, ends>>

Recount(p) ==
  /\ At(p, "Recount")
  /\ seq' = seq + 1
  /\ Put(p, IF seq' = proc[p].seen + 1 THEN RunsNow
            ELSE [proc[p] EXCEPT !.at = "Lock"])
  /\ Say([action |-> "Recount", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, buckets, ends>>

Still(p) ==
  /\ At(p, "Still")
  /\ Put(p, IF inserting THEN RunsNow
            ELSE [proc[p] EXCEPT !.at = "Lock", !.filled = (Insertion = "poc")])
  /\ Say([action |-> "Still", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

Lock(p) ==
  /\ At(p, "Lock")
  /\ owner = Nobody
  /\ owner' = p
  /\ Go(p, IF Insertion = "lock" THEN "Insert" ELSE "Begin")
  /\ Say([action |-> "Lock", process |-> p])
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends>>

-----------------------------------------------------------------------------
(* Under dd->lock. *)

Begin(p) ==
  /\ At(p, "Begin")
  /\ inserting' = TRUE
  /\ Put(p, [proc[p] EXCEPT !.filled = FALSE,
                            !.look = IF proc[p].filled THEN 1 ELSE 0,
                            !.at = IF proc[p].filled THEN "Look"
                                   ELSE IF proc[p].list = <<>> THEN "Filled" ELSE "Insert"])
  /\ Say([action |-> "Begin", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, buckets, seq, ends>>

Insert(p) ==
  /\ At(p, "Insert")
  /\ queued' = queued \o proc[p].list
  /\ Put(p, [proc[p] EXCEPT !.list = <<>>,
                            !.at = IF Insertion = "lock" THEN "Unlock" ELSE "Filled"])
  /\ Say([action |-> "Insert", process |-> p])
  /\ UNCHANGED <<todo, locks, bucket, side, bits, ends>>

(* Whether anybody has filled a bucket since the last look; its own count is no news. *)
Filled(p) ==
  /\ At(p, "Filled")
  /\ seq' = IF Insertion = "v1" THEN seq + 1 ELSE seq
  /\ IF Insertion \in {"v2", "repaired"}
       THEN Go(p, IF buckets THEN "Claim" ELSE "End")
       ELSE IF seq # proc[p].seen
       THEN Put(p, [proc[p] EXCEPT !.at = "Look", !.look = 1, !.seen = seq'])
       ELSE Put(p, [proc[p] EXCEPT !.at = "Unlock", !.seen = 0])
  /\ Say([action |-> "Filled", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, buckets, ends>>

Claim(p) ==
  /\ At(p, "Claim")
  /\ buckets' = FALSE
  /\ Put(p, IF buckets THEN [proc[p] EXCEPT !.at = "Look", !.look = 1]
            ELSE [proc[p] EXCEPT !.at = "End"])
  /\ Say([action |-> "Claim", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, inserting, seq, ends>>

(* Behind the last bucket: insert what was found, if anything. *)
NextBucket(me) ==
  IF me.look < Cpus THEN [me EXCEPT !.at = "Look", !.look = @ + 1]
  ELSE [me EXCEPT !.look = 0,
                  !.at = IF me.list # <<>> THEN "Insert"
                         ELSE IF Insertion \in {"v2", "repaired"} THEN "End" ELSE "Filled"]

Look(p) ==
  /\ At(p, "Look")
  /\ Put(p, IF bucket[proc[p].look] # <<>> THEN [proc[p] EXCEPT !.at = "Collect"]
            ELSE NextBucket(proc[p]))
  /\ Say([action |-> "Look", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

Collect(p) ==
  LET b == proc[p].look IN
  /\ At(p, "Collect")
  /\ bucket' = [bucket EXCEPT ![b] = <<>>]
  /\ Put(p, NextBucket([proc[p] EXCEPT !.list = @ \o bucket[b]]))
  /\ Say([action |-> "Collect", process |-> p])
  /\ UNCHANGED <<todo, locks, queued, side, bits, ends>>

End(p) ==
  /\ At(p, "End")
  /\ inserting' = FALSE
  /\ Go(p, "Again")
  /\ Say([action |-> "End", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, buckets, seq, ends>>

Again(p) ==
  /\ At(p, "Again")
  /\ Go(p, IF buckets THEN "Begin" ELSE "Unlock")
  /\ Say([action |-> "Again", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

Unlock(p) ==
  /\ At(p, "Unlock")
  /\ owner' = Nobody
  /\ Put(p, IF Insertion \in {"poc", "v1"} THEN [Idle EXCEPT !.at = "LateEnd"] ELSE RunsNow)
  /\ Say([action |-> "Unlock", process |-> p])
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends>>

LateEnd(p) ==
  /\ At(p, "LateEnd")
  /\ inserting' = FALSE
  /\ Put(p, RunsNow)
  /\ Say([action |-> "LateEnd", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, dispatching, buckets, seq, ends>>

-----------------------------------------------------------------------------
(* A run of the queue: dispatch until nothing is returned. *)

SideWork == side # <<>> \/ (\E c \in Cpu : bucket[c] # <<>>)
Enter == IF Gating = "none" THEN "PickLock" ELSE "Gate"

HasWork(p) ==
  /\ At(p, "HasWork")
  /\ Put(p, IF queued # <<>> \/ (SeesSide /\ SideWork) THEN [Idle EXCEPT !.at = Enter] ELSE Idle)
  /\ Say([action |-> "HasWork", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

(* Nothing was returned though there was work. *)
Empty == IF Delayed THEN [Idle EXCEPT !.at = "DelayRuns"] ELSE Idle

Gate(p) ==
  /\ At(p, "Gate")
  /\ Put(p, IF dispatching THEN Empty ELSE [Idle EXCEPT !.at = "ShutGate"])
  /\ Say([action |-> "Gate", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, ends>>

ShutGate(p) ==
  /\ At(p, "ShutGate")
  /\ dispatching' = TRUE
  /\ Put(p, IF dispatching THEN Empty ELSE [Idle EXCEPT !.at = "PickLock"])
  /\ Say([action |-> "ShutGate", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, inserting, buckets, seq, ends>>

PickLock(p) ==
  /\ At(p, "PickLock")
  /\ owner = Nobody
  /\ owner' = p
  /\ Go(p, IF Insertion = "lists" THEN "TakeSide" ELSE "Pick")
  /\ Say([action |-> "PickLock", process |-> p])
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends>>

(* The side list into the scheduler, under insert_lock. *)
TakeSide(p) ==
  /\ At(p, "TakeSide")
  /\ sideOwner = Nobody
  /\ queued' = queued \o side
  /\ side' = <<>>
  /\ Go(p, "Pick")
  /\ Say([action |-> "TakeSide", process |-> p])
  /\ UNCHANGED <<todo, locks, bucket, bits, ends>>

Leave == IF Gating = "inside" THEN "OpenGate" ELSE "PickUnlock"

Pick(p) ==
  /\ At(p, "Pick")
  /\ IF queued = <<>>
       THEN /\ UNCHANGED queued
            /\ Go(p, Leave)
       ELSE /\ queued' = Tail(queued)
            /\ Put(p, [proc[p] EXCEPT !.got = <<Head(queued)>>, !.at = Leave])
  /\ Say([action |-> "Pick", process |-> p])
  /\ UNCHANGED <<todo, locks, bucket, side, bits, ends>>

(* Behind both the bit and the lock. *)
Returned(me) == IF me.got = <<>> THEN Empty ELSE [me EXCEPT !.at = "Offer"]

OpenGate(p) ==
  /\ At(p, "OpenGate")
  /\ dispatching' = FALSE
  /\ Put(p, IF Gating = "inside" THEN [proc[p] EXCEPT !.at = "PickUnlock"] ELSE Returned(proc[p]))
  /\ Say([action |-> "OpenGate", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, inserting, buckets, seq, ends>>

PickUnlock(p) ==
  /\ At(p, "PickUnlock")
  /\ owner' = Nobody
  /\ Put(p, IF Gating = "after" THEN [proc[p] EXCEPT !.at = "OpenGate"] ELSE Returned(proc[p]))
  /\ Say([action |-> "PickUnlock", process |-> p])
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends>>

Offer(p) ==
  /\ At(p, "Offer")
  /\ device' = device \union {proc[p].got[1]}
  /\ Put(p, RunsNow)
  /\ Say([action |-> "Offer", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, done, armed>>

DelayRuns(p) ==
  /\ At(p, "DelayRuns")
  /\ armed' = TRUE
  /\ Put(p, Idle)
  /\ Say([action |-> "DelayRuns", process |-> p])
  /\ UNCHANGED <<todo, locks, lists, bits, device, done>>

(* The delayed run's time has come. *)
Fire ==
  /\ armed
  /\ At(Runner, "Idle")
  /\ armed' = FALSE
  /\ Put(Runner, RunsNow)
  /\ Say([action |-> "Fire"])
  /\ UNCHANGED <<todo, locks, lists, bits, device, done>>

Complete(r) ==
  /\ r \in device
  /\ At(Completer, "Idle")
  /\ device' = device \ {r}
  /\ done' = done \union {r}
  /\ IF Reruns THEN Put(Completer, RunsNow) ELSE UNCHANGED proc
  /\ Say([action |-> "Complete", request |-> r])
  /\ UNCHANGED <<todo, locks, lists, bits, armed>>

-----------------------------------------------------------------------------
Step(p) ==
  \/ Submit(p) \/ SideLock(p) \/ AppendSide(p) \/ SideUnlock(p) \/ Note(p) \/ TryLock(p) \/ Busy(p)
  \/ Count(p) \/ Marked(p) \/ Mark(p) \/ Fill(p) \/ Recount(p) \/ Still(p) \/ Lock(p)
  \/ Begin(p) \/ Insert(p) \/ Filled(p) \/ Claim(p) \/ Look(p) \/ Collect(p) \/ End(p) \/ Again(p)
  \/ Unlock(p) \/ LateEnd(p)
  \/ HasWork(p) \/ Gate(p) \/ ShutGate(p) \/ PickLock(p) \/ TakeSide(p) \/ Pick(p) \/ OpenGate(p)
  \/ PickUnlock(p) \/ Offer(p) \/ DelayRuns(p)

Next ==
  \/ (\E p \in Process : Submit(p))
  \/ (\E p \in Process : SideLock(p))
  \/ (\E p \in Process : AppendSide(p))
  \/ (\E p \in Process : SideUnlock(p))
  \/ (\E p \in Process : Note(p))
  \/ (\E p \in Process : TryLock(p))
  \/ (\E p \in Process : Busy(p))
  \/ (\E p \in Process : Count(p))
  \/ (\E p \in Process : Marked(p))
  \/ (\E p \in Process : Mark(p))
  \/ (\E p \in Process : Fill(p))
  \/ (\E p \in Process : Recount(p))
  \/ (\E p \in Process : Still(p))
  \/ (\E p \in Process : Lock(p))
  \/ (\E p \in Process : Begin(p))
  \/ (\E p \in Process : Insert(p))
  \/ (\E p \in Process : Filled(p))
  \/ (\E p \in Process : Claim(p))
  \/ (\E p \in Process : Look(p))
  \/ (\E p \in Process : Collect(p))
  \/ (\E p \in Process : End(p))
  \/ (\E p \in Process : Again(p))
  \/ (\E p \in Process : Unlock(p))
  \/ (\E p \in Process : LateEnd(p))
  \/ (\E p \in Process : HasWork(p))
  \/ (\E p \in Process : Gate(p))
  \/ (\E p \in Process : ShutGate(p))
  \/ (\E p \in Process : PickLock(p))
  \/ (\E p \in Process : TakeSide(p))
  \/ (\E p \in Process : Pick(p))
  \/ (\E p \in Process : OpenGate(p))
  \/ (\E p \in Process : PickUnlock(p))
  \/ (\E p \in Process : Offer(p))
  \/ (\E p \in Process : DelayRuns(p))
  \/ Fire
  \/ (\E r \in Request : Complete(r))

Spec == Init /\ [][Next]_vars

(* A process that can continue does so at last, and locks are granted in the order of requests;     *)
(* no submission is forced.                                                                        *)
Fairness ==
  /\ (\A p \in Process : WF_vars(Step(p) /\ ~At(p, "Idle")))
  /\ (\A p \in Process : SF_vars(SideLock(p) \/ Lock(p) \/ PickLock(p) \/ TakeSide(p)))
  /\ WF_vars(Fire)
  /\ (\A r \in Request : WF_vars(Complete(r)))
FairSpec == Spec /\ Fairness

Quiet ==
  /\ \A p \in Process : At(p, "Idle")
  /\ device = {}
  /\ ~armed
Submitted == {r \in Request : (r - 1) % PerCpu < PerCpu - todo[((r - 1) \div PerCpu) + 1]}

(* Nothing runs, nothing will, and a request waits for the next submitter. *)
NoStall == Quiet => done = Submitted

(* The same without further submissions: a request is left for ever. *)
NoneLeft == (Quiet /\ \A c \in Cpu : todo[c] = 0) => done = Request

(* A submitted request is in exactly one place. *)
Places ==
  {<<"queued", 0>>, <<"side", 0>>} \union {<<"bucket", c>> : c \in Cpu}
    \union {<<"list", p>> : p \in Process} \union {<<"got", p>> : p \in Process}
Range(s) == {s[i] : i \in 1..Len(s)}
Content(l) ==
  CASE l[1] = "queued" -> queued
    [] l[1] = "side" -> side
    [] l[1] = "bucket" -> bucket[l[2]]
    [] l[1] = "list" -> proc[l[2]].list
    [] l[1] = "got" -> proc[l[2]].got
NothingLost ==
  /\ \A r \in Request :
       Cardinality({l \in Places : r \in Range(Content(l))})
         = IF r \in Submitted /\ r \notin device /\ r \notin done THEN 1 ELSE 0
  /\ \A l \in Places : Len(Content(l)) = Cardinality(Range(Content(l)))
  /\ device \intersect done = {}

(* Who holds the lock is inside its section, and only the holder. *)
InSection == {"Begin", "Insert", "Filled", "Claim", "Look", "Collect", "End", "Again", "Unlock",
              "TakeSide", "InsertSide", "Pick", "PickUnlock"}
               \union (IF Gating = "inside" THEN {"OpenGate"} ELSE {})
LockExact == \A p \in Process : (owner = p) = (proc[p].at \in InSection)

EveryRequestEnds == \A r \in Request : (r \in Submitted) ~> (r \in done)

(* What schedules and traces show of a state. *)
Observed ==
  [owner |-> owner, queued |-> queued, bucket |-> bucket, side |-> side, seq |-> seq,
   dispatching |-> dispatching, inserting |-> inserting, buckets |-> buckets, armed |-> armed,
   device |-> device, done |-> done]

(* To be violated: shows that a run can end well. *)
NeverAllDone == ~(Quiet /\ done = Request)
=============================================================================
