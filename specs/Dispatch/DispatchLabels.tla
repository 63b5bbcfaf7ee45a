--------------------------- MODULE DispatchLabels ---------------------------
(***************************************************************************)
(* Dispatch with one step a label: what Dispatch.tla joins into one step   *)
(* is apart here, and what it leaves out - several requests an insertion   *)
(* and a pass, looks for merges, runs left to kblockd, requests without    *)
(* end - is in. The simulator's runs are behaviours of this module.        *)
(* labels.txt says which label is which step.                              *)
(*                                                                         *)
(* Not here: completions that run the queue, has_work that sees buckets.   *)
(***************************************************************************)
EXTENDS Dispatch

CONSTANTS
  Rechecks     \* a run that finds nothing looks again, under queue_lock (v6.12)

VARIABLES
  under,   \* requests that were submitted and have not ended
  late     \* last owner of dd->lock, until its next step in time: others may not see the release yet

labelVars == <<vars, under, late>>

ASSUME /\ Rechecks \in BOOLEAN
       /\ ~Reruns
       /\ SeesSide => Insertion = "lists"

LabelsInit ==
  /\ Init
  /\ under = {}
  /\ late = Nobody

InTime(p) == late' = IF late = p THEN Nobody ELSE late
SayOf(name, p) == Say([action |-> name, process |-> p])

-----------------------------------------------------------------------------
(* Before insertion. A request that has ended may be submitted again, like a new one. *)
Fresh(r) == r \notin under

First == CASE Insertion \in {"poc", "v1"} -> "Note"
           [] Insertion = "lock" -> "Lock"
           [] Insertion = "lists" -> "AppendSide"
           [] OTHER -> "TryLock"

(* One more request of the list that is to be inserted. *)
LSubmit(p, r) ==
  /\ p \in Cpu
  /\ Fresh(r)
  /\ \/ At(p, "Idle")
     \/ At(p, First) /\ proc[p].list # <<>>
  /\ Put(p, [Idle EXCEPT !.list = Append(proc[p].list, r), !.at = First])
  /\ under' = under \union {r}
  /\ done' = done \ {r}
  /\ Say([action |-> "Submit", process |-> p, request |-> r])
  /\ UNCHANGED <<todo, locks, lists, bits, device, armed, late>>

(* A bio's look for a merge: the scheduler's lock is taken, and nothing is found. *)
MergeAsk(p) ==
  /\ p \in Cpu
  /\ At(p, "Idle")
  /\ Go(p, "MergeLock")
  /\ SayOf("MergeAsk", p)
  /\ UNCHANGED <<todo, locks, lists, bits, ends, under, late>>

MergeLock(p) ==
  /\ p \in Cpu
  /\ At(p, "Idle") \/ At(p, "MergeLock")
  /\ owner = Nobody
  /\ owner' = p
  /\ late' = Nobody
  /\ Go(p, "Merge")
  /\ SayOf("MergeLock", p)
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends, under>>

Merge(p) ==
  /\ At(p, "Merge")
  /\ owner' = Nobody
  /\ late' = p
  /\ Put(p, Idle)
  /\ SayOf("Merge", p)
  /\ UNCHANGED <<todo, sideOwner, lists, bits, ends, under>>

-----------------------------------------------------------------------------
(* Insertion. Nobody tries insert_lock, and its section is one label. *)
LAppendSide(p) ==
  /\ At(p, "AppendSide")
  /\ side' = side \o proc[p].list
  /\ Put(p, RunsNow)
  /\ InTime(p)
  /\ SayOf("AppendSide", p)
  /\ UNCHANGED <<todo, locks, queued, bucket, bits, ends, under>>

LNote(p) == Note(p) /\ InTime(p) /\ UNCHANGED under

LTryLock(p) ==
  /\ TryLock(p)
  /\ late' = IF owner = Nobody \/ late = p THEN Nobody ELSE late
  /\ UNCHANGED under

(* The lock is free but not seen to be: its release is on the way, or another CPU waits for it. *)
TryLate(p) ==
  /\ At(p, "TryLock")
  /\ owner = Nobody
  /\ \/ late \notin {Nobody, p}
     \/ \E other \in Process \ {p} : proc[other].at \in {"Lock", "PickLock", "MergeLock"}
  /\ Go(p, "Busy")
  /\ InTime(p)
  /\ SayOf("TryLate", p)
  /\ UNCHANGED <<todo, locks, lists, bits, ends, under>>

LBusy(p) == Busy(p) /\ InTime(p) /\ UNCHANGED under
LCount(p) == Count(p) /\ InTime(p) /\ UNCHANGED under
LMarked(p) == Marked(p) /\ InTime(p) /\ UNCHANGED under
LMark(p) == Mark(p) /\ InTime(p) /\ UNCHANGED under
LFill(p) == Fill(p) /\ InTime(p) /\ UNCHANGED under
LRecount(p) == Recount(p) /\ InTime(p) /\ UNCHANGED under
LStill(p) == Still(p) /\ InTime(p) /\ UNCHANGED under
LLock(p) == Lock(p) /\ late' = Nobody /\ UNCHANGED under
LBegin(p) == Begin(p) /\ InTime(p) /\ UNCHANGED under
LFilled(p) == Filled(p) /\ InTime(p) /\ UNCHANGED under
LClaim(p) == Claim(p) /\ InTime(p) /\ UNCHANGED under
LLook(p) == Look(p) /\ InTime(p) /\ UNCHANGED under
LCollect(p) == Collect(p) /\ InTime(p) /\ UNCHANGED under
LEnd(p) == End(p) /\ InTime(p) /\ UNCHANGED under
LAgain(p) == Again(p) /\ InTime(p) /\ UNCHANGED under
LUnlock(p) == Unlock(p) /\ late' = p /\ UNCHANGED under
LLateEnd(p) == LateEnd(p) /\ InTime(p) /\ UNCHANGED under

(* Under the lock all at once, with its release. *)
InsertAll(p) ==
  /\ At(p, "Insert")
  /\ queued' = queued \o proc[p].list
  /\ owner' = Nobody
  /\ late' = p
  /\ Put(p, RunsNow)
  /\ SayOf("Insert", p)
  /\ UNCHANGED <<todo, sideOwner, bucket, side, bits, ends, under>>

LInsert(p) ==
  IF Insertion = "lock" THEN InsertAll(p) ELSE Insert(p) /\ InTime(p) /\ UNCHANGED under

-----------------------------------------------------------------------------
(* A run looks whether there is work, and looks again before it gives up. Looks are not in time. *)
Looked(name, p, next) ==
  /\ Put(p, next)
  /\ SayOf(name, p)
  /\ UNCHANGED <<todo, locks, lists, bits, ends, under, late>>

Found(p) == [proc[p] EXCEPT !.at = "Enter"]
NotFound == IF Rechecks THEN [Idle EXCEPT !.at = "Recheck"] ELSE Idle

Glance(p) ==
  /\ At(p, "HasWork")
  /\ Looked("Glance", p, IF queued # <<>> THEN Found(p)
                         ELSE IF SeesSide THEN [Idle EXCEPT !.at = "GlanceSide"] ELSE NotFound)

GlanceSide(p) ==
  /\ At(p, "GlanceSide")
  /\ Looked("GlanceSide", p, IF side # <<>> THEN Found(p) ELSE NotFound)

Recheck(p) ==
  /\ At(p, "Recheck")
  /\ Looked("Recheck", p, IF queued # <<>> \/ (SeesSide /\ side # <<>>) THEN Found(p) ELSE Idle)

(* There is work, or was: kblockd's. *)
LeaveRun(p) ==
  /\ At(p, "Enter") \/ At(p, "Pass")
  /\ armed' = TRUE
  /\ Put(p, Idle)
  /\ SayOf("LeaveRun", p)
  /\ UNCHANGED <<todo, locks, lists, bits, device, done, under, late>>

LFire ==
  /\ armed
  /\ At(Runner, "Idle")
  /\ armed' = FALSE
  /\ Put(Runner, [Idle EXCEPT !.at = "Work"])
  /\ Say([action |-> "Fire"])
  /\ UNCHANGED <<todo, locks, lists, bits, device, done, under, late>>

-----------------------------------------------------------------------------
(* A pass: requests are picked one after another, as many as it likes, and then offered. `filled` *)
(* says here that the last pick gave one.                                                         *)
NoMore(me) == IF me.got = <<>> THEN Idle ELSE [me EXCEPT !.at = "Offer"]
Withheld(me) == IF me.got = <<>> THEN Empty ELSE [me EXCEPT !.at = "Offer"]
Picked(me) == IF me.filled THEN [me EXCEPT !.at = "Picked", !.filled = FALSE] ELSE Withheld(me)

LHasWork(p) ==
  /\ proc[p].at \in {"Enter", "Work", "Pass", "Picked"}
  /\ Looked("HasWork", p, IF queued # <<>> THEN [proc[p] EXCEPT !.at = Enter]
                          ELSE IF SeesSide THEN [proc[p] EXCEPT !.at = "HasSide"]
                          ELSE NoMore(proc[p]))

HasSide(p) ==
  /\ At(p, "HasSide")
  /\ Looked("HasSide", p, IF side # <<>> THEN [proc[p] EXCEPT !.at = Enter] ELSE NoMore(proc[p]))

LGate(p) ==
  /\ At(p, "Gate")
  /\ Put(p, IF dispatching THEN Withheld(proc[p]) ELSE [proc[p] EXCEPT !.at = "ShutGate"])
  /\ InTime(p)
  /\ SayOf("Gate", p)
  /\ UNCHANGED <<todo, locks, lists, bits, ends, under>>

LShutGate(p) ==
  /\ At(p, "ShutGate")
  /\ dispatching' = TRUE
  /\ Put(p, IF dispatching THEN Withheld(proc[p]) ELSE [proc[p] EXCEPT !.at = "PickLock"])
  /\ InTime(p)
  /\ SayOf("ShutGate", p)
  /\ UNCHANGED <<todo, locks, lists, inserting, buckets, seq, ends, under>>

LPickLock(p) == PickLock(p) /\ late' = Nobody /\ UNCHANGED under

(* insert_lock is dropped before the scheduler has them: no other CPU sees them in between. *)
LTakeSide(p) ==
  /\ At(p, "TakeSide")
  /\ sideOwner = Nobody
  /\ side' = <<>>
  /\ Put(p, [proc[p] EXCEPT !.at = "InsertSide", !.list = side])
  /\ InTime(p)
  /\ SayOf("TakeSide", p)
  /\ UNCHANGED <<todo, locks, queued, bucket, bits, ends, under>>

InsertSide(p) ==
  /\ At(p, "InsertSide")
  /\ queued' = queued \o proc[p].list
  /\ Put(p, [proc[p] EXCEPT !.at = "Pick", !.list = <<>>])
  /\ InTime(p)
  /\ SayOf("InsertSide", p)
  /\ UNCHANGED <<todo, locks, bucket, side, bits, ends, under>>

(* The release: with the gate inside the section, or before it. *)
Drops(p) == owner' = Nobody /\ late' = p
Keeps(p) == owner' = owner /\ InTime(p)

LPick(p) ==
  LET gives == queued # <<>>
      me == [proc[p] EXCEPT !.filled = gives,
                            !.got = IF gives THEN Append(@, Head(queued)) ELSE @]
  IN /\ At(p, "Pick")
     /\ queued' = IF gives THEN Tail(queued) ELSE queued
     /\ Put(p, IF Gating = "none" THEN Picked(me) ELSE [me EXCEPT !.at = "OpenGate"])
     /\ IF Gating = "inside" THEN Keeps(p) ELSE Drops(p)
     /\ SayOf("Pick", p)
     /\ UNCHANGED <<todo, sideOwner, bucket, side, bits, ends, under>>

LOpenGate(p) ==
  /\ At(p, "OpenGate")
  /\ dispatching' = FALSE
  /\ Put(p, Picked(proc[p]))
  /\ IF Gating = "inside" THEN Drops(p) ELSE Keeps(p)
  /\ SayOf("OpenGate", p)
  /\ UNCHANGED <<todo, sideOwner, lists, inserting, buckets, seq, ends, under>>

LOffer(p) ==
  LET rest == Tail(proc[p].got)
  IN /\ At(p, "Picked") \/ At(p, "Offer")
     /\ device' = device \union {Head(proc[p].got)}
     /\ Put(p, [proc[p] EXCEPT !.got = rest, !.at = IF rest = <<>> THEN "Pass" ELSE "Offer"])
     /\ SayOf("Offer", p)
     /\ UNCHANGED <<todo, locks, lists, bits, done, armed, under, late>>

LDelayRuns(p) == DelayRuns(p) /\ UNCHANGED <<under, late>>

LComplete(r) ==
  /\ r \in device
  /\ device' = device \ {r}
  /\ done' = done \union {r}
  /\ under' = under \ {r}
  /\ Say([action |-> "Complete", request |-> r])
  /\ UNCHANGED <<todo, locks, lists, bits, armed, proc, late>>

-----------------------------------------------------------------------------
LabelsNext ==
  \/ (\E p \in Process, r \in Request : LSubmit(p, r))
  \/ (\E p \in Process : MergeAsk(p))
  \/ (\E p \in Process : MergeLock(p))
  \/ (\E p \in Process : Merge(p))
  \/ (\E p \in Process : LAppendSide(p))
  \/ (\E p \in Process : LNote(p))
  \/ (\E p \in Process : LTryLock(p))
  \/ (\E p \in Process : TryLate(p))
  \/ (\E p \in Process : LBusy(p))
  \/ (\E p \in Process : LCount(p))
  \/ (\E p \in Process : LMarked(p))
  \/ (\E p \in Process : LMark(p))
  \/ (\E p \in Process : LFill(p))
  \/ (\E p \in Process : LRecount(p))
  \/ (\E p \in Process : LStill(p))
  \/ (\E p \in Process : LLock(p))
  \/ (\E p \in Process : LBegin(p))
  \/ (\E p \in Process : LInsert(p))
  \/ (\E p \in Process : LFilled(p))
  \/ (\E p \in Process : LClaim(p))
  \/ (\E p \in Process : LLook(p))
  \/ (\E p \in Process : LCollect(p))
  \/ (\E p \in Process : LEnd(p))
  \/ (\E p \in Process : LAgain(p))
  \/ (\E p \in Process : LUnlock(p))
  \/ (\E p \in Process : LLateEnd(p))
  \/ (\E p \in Process : Glance(p))
  \/ (\E p \in Process : GlanceSide(p))
  \/ (\E p \in Process : Recheck(p))
  \/ (\E p \in Process : LeaveRun(p))
  \/ (\E p \in Process : LHasWork(p))
  \/ (\E p \in Process : HasSide(p))
  \/ (\E p \in Process : LGate(p))
  \/ (\E p \in Process : LShutGate(p))
  \/ (\E p \in Process : LPickLock(p))
  \/ (\E p \in Process : LTakeSide(p))
  \/ (\E p \in Process : InsertSide(p))
  \/ (\E p \in Process : LPick(p))
  \/ (\E p \in Process : LOpenGate(p))
  \/ (\E p \in Process : LOffer(p))
  \/ (\E p \in Process : LDelayRuns(p))
  \/ LFire
  \/ (\E r \in Request : LComplete(r))

LabelsSpec == LabelsInit /\ [][LabelsNext]_labelVars

-----------------------------------------------------------------------------
(* Nothing runs, nothing will, and a request waits for the next submitter. *)
LabelsNoStall == Quiet => under = {}

(* A request that is under way and not in the device is in exactly one place: the places hold no    *)
(* others, and together as many as there are.                                                      *)
InBuckets[c \in 0..Cpus] == IF c = 0 THEN 0 ELSE InBuckets[c - 1] + Len(bucket[c])
InHands[p \in 0..(Cpus + 2)] ==
  IF p = 0 THEN 0 ELSE InHands[p - 1] + Len(proc[p].list) + Len(proc[p].got)
LabelsNothingLost ==
  /\ UNION {Range(Content(l)) : l \in Places} = under \ device
  /\ Len(queued) + Len(side) + InBuckets[Cpus] + InHands[Cpus + 2] = Cardinality(under \ device)
  /\ device \subseteq under

LabelsLockExact ==
  \A p \in Process :
    (owner = p) = (proc[p].at \in (InSection \ {"PickUnlock"}) \union {"Merge"})

(* To be violated: no work is left, though CPUs may still look for some. *)
LabelsNeverAllDone == under # {}

LabelsObserved ==
  [owner |-> owner, queued |-> queued, bucket |-> bucket, side |-> side, seq |-> seq,
   dispatching |-> dispatching, inserting |-> inserting, buckets |-> buckets, armed |-> armed,
   device |-> device]
=============================================================================
