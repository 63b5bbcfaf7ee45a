---------------------------- MODULE RestartLabels ----------------------------
(***************************************************************************)
(* Restart with one step a label: what Restart.tla joins into one step is  *)
(* apart here, as CPUs that work at the same time have it. The simulator's *)
(* runs are behaviours of this module. labels.txt says which label is which*)
(* step.                                                                   *)
(*                                                                         *)
(* Not here: a device limit, one waiter woken at a time, several hctxs a   *)
(* queue.                                                                  *)
(***************************************************************************)
EXTENDS Restart

VARIABLES
  asked,   \* hctx: runs asked for at most; kblockd melts its own into one, others come one by one
  ending   \* request that is freed: where its end is, which hctx of the walk, whom it has to wake

labelVars == <<vars, asked, ending>>

ASSUME /\ Limit = 0
       /\ Hctxs = 1
       /\ WaitRule # "one"
       /\ EntryRule # "any"
       /\ ~DriverReruns
       /\ MarkSplit = (RestartRule \in {"R0", "R2", "R2p"})

NoEnd == [at |-> "none", visit |-> 0, owes |-> {}]

LabelsInit ==
  /\ Init
  /\ asked = [h \in Hctx |-> 0]
  /\ ending = [r \in Requests |-> NoEnd]

(* Runs of these hctxs are asked for. *)
AskRuns(hs) ==
  /\ pending' = [h \in Hctx |-> pending[h] \/ h \in hs]
  /\ asked' = [h \in Hctx |-> IF h \in hs THEN asked[h] + 1 ELSE asked[h]]
SameRuns == UNCHANGED <<pending, asked>>

At(h, c, place) == ctx[h][c].at = place
Goes(h, c, place) == Put(h, c, [ctx[h][c] EXCEPT !.at = place])
SayRequest(name, r, h) == Say([action |-> name, request |-> r, hctx |-> h])
SayContext(name, h, c) == Say([action |-> name, hctx |-> h, context |-> c])
SayEnd(name, r) == Say([action |-> name, request |-> r])

-----------------------------------------------------------------------------
(* A request that has ended may be submitted again, like a new one. *)
Fresh(r) == state[r] \in {"new", "done"}

LInsertSched(r, h) ==
  /\ Fresh(r)
  /\ state' = [state EXCEPT ![r] = "live"]
  /\ sched' = [sched EXCEPT ![QueueOf(h)] = Append(@, r)]
  /\ AskRuns({h})
  /\ SayRequest("InsertSched", r, h)
  /\ UNCHANGED <<home, disp, restart, tags, waiters, qcount, mcount, starved, ctx, ending>>

LInsertBypass(r, h) ==
  /\ Fresh(r)
  /\ state' = [state EXCEPT ![r] = "live"]
  /\ disp' = [disp EXCEPT ![h] = <<r>> \o @]
  /\ AskRuns({h})
  /\ SayRequest("InsertBypass", r, h)
  /\ UNCHANGED <<home, sched, restart, tags, waiters, qcount, mcount, starved, ctx, ending>>

-----------------------------------------------------------------------------
(* A run begins; with it end all requests for runs, or this one alone. *)
Begins(h, c) ==
  /\ At(h, c, "Start")
  /\ \A d \in Ctx : d < c => ~At(h, d, "Start")
  /\ IF disp[h] = <<>>
       THEN Put(h, c, [Idle EXCEPT !.at = "Ask"])
       ELSE Put(h, c, [Idle EXCEPT !.at = "Mark", !.list = disp[h], !.left = TRUE])
  /\ disp' = [disp EXCEPT ![h] = <<>>]
  /\ UNCHANGED <<state, home, sched, restart, tags, waiters, qcount, mcount, starved, ending>>

LStart(h, c) ==
  /\ pending[h]
  /\ pending' = [pending EXCEPT ![h] = FALSE]
  /\ asked' = [asked EXCEPT ![h] = 0]
  /\ Begins(h, c)
  /\ SayContext("Start", h, c)

StartOne(h, c) ==
  /\ asked[h] > 1
  /\ asked' = [asked EXCEPT ![h] = @ - 1]
  /\ UNCHANGED pending
  /\ Begins(h, c)
  /\ SayContext("StartOne", h, c)

(* Whoever is marked already is not marked again. *)
LMark(h, c) ==
  /\ At(h, c, "Mark")
  /\ Goes(h, c, IF restart[h] THEN "Issue" ELSE "SetMark")
  /\ SayContext("Mark", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* Unless another run was faster, the mark is counted next, where marks are counted. *)
SetMark(h, c) ==
  /\ At(h, c, "SetMark")
  /\ restart' = [restart EXCEPT ![h] = TRUE]
  /\ Goes(h, c, IF restart[h] \/ ~MarkSplit THEN "Issue" ELSE "Count")
  /\ SayContext("SetMark", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, waiters, qcount, mcount, starved, ending>>

LCount(h, c) == Count(h, c) /\ UNCHANGED <<asked, ending>>
LAsk(h, c) == Ask(h, c) /\ UNCHANGED <<asked, ending>>

(* With a tag: the device has the head of the list. *)
Gets(h, c, next) ==
  LET r == Head(ctx[h][c].list)
  IN /\ tags[MapOf(h)] > 0
     /\ tags' = [tags EXCEPT ![MapOf(h)] = @ - 1]
     /\ state' = [state EXCEPT ![r] = "device"]
     /\ home' = [home EXCEPT ![r] = h]
     /\ Put(h, c, next)
NoTag(h) == tags[MapOf(h)] = 0

LIssue(h, c) ==
  /\ At(h, c, "Issue")
  /\ Gets(h, c, Issued(ctx[h][c]))
  /\ SayContext("Issue", h, c)
  /\ SameRuns
  /\ UNCHANGED <<sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* The first attempt finds no tag. *)
Miss(h, c) ==
  /\ At(h, c, "Issue")
  /\ NoTag(h)
  /\ IF WaitRule = "none" THEN Put(h, c, GiveUp(ctx[h][c])) ELSE Goes(h, c, "InLine")
  /\ SayContext("Miss", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* Is the hctx in a wait queue already? *)
InLine(h, c) ==
  /\ At(h, c, "InLine")
  /\ IF Waits(h) THEN Put(h, c, GiveUp(ctx[h][c])) ELSE Goes(h, c, "Line")
  /\ SayContext("InLine", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* Under the wait queue's lock: into the line, unless another run was faster. *)
Line(h, c) ==
  /\ At(h, c, "Line")
  /\ IF Waits(h)
       THEN Put(h, c, GiveUp(ctx[h][c])) /\ UNCHANGED waiters
       ELSE /\ Goes(h, c, "Retry")
            /\ waiters' = [waiters EXCEPT ![MapOf(h)] = Append(@, h)]
  /\ SayContext("Line", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, qcount, mcount, starved, ending>>

(* What a context with a tag does that has looked after its entry in the line. *)
Goes_on(me) ==
  IF me.list # <<>> THEN [me EXCEPT !.at = "Issue", !.moved = me.left]
  ELSE IF ~me.left \/ Asks(TRUE) THEN [Idle EXCEPT !.at = "Ask"]
  ELSE Idle

LRetry(h, c) ==
  LET me == ctx[h][c]
  IN /\ me.at = "Retry"
     /\ IF NoTag(h)
          THEN Put(h, c, GiveUp(me)) /\ UNCHANGED <<state, home, tags>>
          ELSE Gets(h, c, IF EntryRule = "kept"
                            THEN Issued(me)
                            ELSE [me EXCEPT !.at = "Stale", !.list = Tail(@)])
     /\ SayContext("Retry", h, c)
     /\ SameRuns
     /\ UNCHANGED <<sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* With a tag: an entry that is still in a wait queue must be removed. *)
Stale(h, c) ==
  /\ At(h, c, "Stale")
  /\ IF Waits(h) THEN Goes(h, c, "Leave") ELSE Put(h, c, Goes_on(ctx[h][c]))
  /\ SayContext("Stale", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

(* Whoever is out of the line needs no wake-up any more. *)
Owed(gone) == [r \in Requests |-> [ending[r] EXCEPT !.owes = @ \ gone]]

Leave(h, c) ==
  /\ At(h, c, "Leave")
  /\ waiters' = [waiters EXCEPT ![MapOf(h)] = Without(@, h)]
  /\ ending' = Owed({h})
  /\ Put(h, c, Goes_on(ctx[h][c]))
  /\ SayContext("Leave", h, c)
  /\ SameRuns
  /\ UNCHANGED <<state, home, tags, sched, disp, restart, qcount, mcount, starved>>

LPutBack(h, c) ==
  LET me == ctx[h][c]
  IN /\ me.at = "PutBack"
     /\ disp' = [disp EXCEPT ![h] = me.list \o @]
     /\ Put(h, c, [me EXCEPT !.at = "Recheck", !.list = <<>>])
     /\ SayContext("PutBack", h, c)
     /\ SameRuns
     /\ UNCHANGED <<state, home, sched, restart, tags, waiters, qcount, mcount, starved, ending>>

(* The re-check after a put-back reads SCHED_RESTART, and then the entry's wait queue. *)
Recheck_(h, c) ==
  LET me == ctx[h][c]
      reads == IF Recheck = "4.14" THEN ~restart[h] ELSE restart[h] /\ me.notag
      line == reads /\ WaitRule # "none"
  IN /\ me.at = "Recheck"
     /\ IF line
          THEN Goes(h, c, "StillInLine") /\ SameRuns
          ELSE /\ Put(h, c, PutBackDone(me))
               /\ IF restart[h] THEN SameRuns ELSE AskRuns({h})
     /\ SayContext("Recheck", h, c)
     /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

StillInLine(h, c) ==
  LET me == ctx[h][c]
  IN /\ me.at = "StillInLine"
     /\ Put(h, c, PutBackDone(me))
     /\ IF Waits(h) THEN SameRuns ELSE AskRuns({h})
     /\ SayContext("StillInLine", h, c)
     /\ UNCHANGED <<state, home, tags, sched, disp, restart, waiters, qcount, mcount, starved, ending>>

-----------------------------------------------------------------------------
(* The end of a request: the tag, its waiters, and the restart rule. *)

Ends(r, place) == ending[r].at = place
GoesTo(r, place) ==
  /\ ending' = [ending EXCEPT ![r].at = place]
  /\ UNCHANGED <<state, home>>
Done(r) ==
  /\ state' = [state EXCEPT ![r] = "done"]
  /\ home' = [home EXCEPT ![r] = None]
  /\ ending' = [ending EXCEPT ![r] = NoEnd]

(* The tag is free: this end must wake the present waiters, if no other does. *)
LFree(r) ==
  LET m == MapOf(home[r])
  IN /\ state[r] = "device"
     /\ state' = [state EXCEPT ![r] = "freed"]
     /\ tags' = [tags EXCEPT ![m] = @ + 1]
     /\ ending' = [ending EXCEPT ![r] = [at |-> "Wake", visit |-> 1, owes |-> Range(waiters[m])]]
     /\ SayEnd("Free", r)
     /\ SameRuns
     /\ UNCHANGED <<home, sched, disp, restart, waiters, qcount, mcount, starved, ctx>>

(* The free looks for waiters, in one wait queue after another, and finds none. *)
Waking(r) ==
  /\ Ends(r, "Wake")
  /\ SayEnd("Waking", r)
  /\ SameRuns
  /\ UNCHANGED <<state, home, sched, disp, restart, tags, waiters, qcount, mcount, starved, ctx, ending>>

(* Under the lock of one of them: all its waiters. Which wait queue that is, is not modelled. *)
Wake(r) ==
  LET m == MapOf(home[r])
  IN /\ Ends(r, "Wake")
     /\ \E woken \in SUBSET Range(waiters[m]) :
          /\ woken # {}
          /\ waiters' = [waiters EXCEPT ![m] = SelectSeq(@, LAMBDA h : h \notin woken)]
          /\ AskRuns({h \in woken : WokenRuns(h)})
          /\ ending' = Owed(woken)
     /\ SayEnd("Wake", r)
     /\ UNCHANGED <<state, home, sched, disp, restart, tags, qcount, mcount, starved, ctx>>

(* The first look: at what gates the walk, or at the hctx's own mark. *)
Gate(r) ==
  LET h == home[r]
  IN /\ Ends(r, "Wake")
     /\ ending[r].owes = {}
     /\ CASE RestartRule = "R4" -> IF restart[h] THEN GoesTo(r, "Clear") ELSE Done(r)
          [] RestartRule = "R2" -> IF qcount[QueueOf(h)] = 0 THEN Done(r) ELSE GoesTo(r, "Visit")
          [] RestartRule = "R2p" -> IF mcount[MapOf(h)] = 0 THEN Done(r) ELSE GoesTo(r, "Visit")
          [] RestartRule = "R0" -> IF qcount[QueueOf(h)] = 0 THEN Done(r) ELSE GoesTo(r, "Flag")
          [] OTHER -> GoesTo(r, "Visit")
     /\ SayEnd("Gate", r)
     /\ SameRuns
     /\ UNCHANGED <<sched, disp, restart, tags, waiters, qcount, mcount, starved, ctx>>

(* R4: the own mark is cleared, and the own hctx runs. *)
Clear(r) ==
  /\ Ends(r, "Clear")
  /\ restart' = [restart EXCEPT ![home[r]] = FALSE]
  /\ AskRuns({home[r]})
  /\ Done(r)
  /\ SayEnd("Clear", r)
  /\ UNCHANGED <<sched, disp, tags, waiters, qcount, mcount, starved, ctx>>

(* R0: the flag is cleared before the marks. *)
ClearFlag(r) ==
  /\ Ends(r, "Flag")
  /\ qcount' = [qcount EXCEPT ![QueueOf(home[r])] = 0]
  /\ GoesTo(r, "Visit")
  /\ SayEnd("ClearFlag", r)
  /\ SameRuns
  /\ UNCHANGED <<sched, disp, restart, tags, waiters, mcount, starved, ctx>>

(* The walk: which hctxs, and the one whose turn it is. *)
Order(r) == IF RestartRule = "R0" THEN <<home[r]>> ELSE ScanOrder(home[r])
Turn(r) == Order(r)[ending[r].visit]
Onward(r) ==
  IF ending[r].visit = Len(Order(r))
    THEN Done(r)
    ELSE /\ ending' = [ending EXCEPT ![r].visit = @ + 1, ![r].at = "Visit"]
         /\ UNCHANGED <<state, home>>

Visit(r) ==
  /\ Ends(r, "Visit")
  /\ IF restart[Turn(r)] THEN GoesTo(r, "Unmark") ELSE Onward(r)
  /\ SayEnd("Visit", r)
  /\ SameRuns
  /\ UNCHANGED <<sched, disp, restart, tags, waiters, qcount, mcount, starved, ctx>>

Unmark(r) ==
  LET counted == RestartRule \in {"R2", "R2p"}
  IN /\ Ends(r, "Unmark")
     /\ restart' = [restart EXCEPT ![Turn(r)] = FALSE]
     /\ GoesTo(r, IF restart[Turn(r)] /\ counted THEN "Uncount" ELSE "SeesDispatch")
     /\ SayEnd("Unmark", r)
     /\ SameRuns
     /\ UNCHANGED <<sched, disp, tags, waiters, qcount, mcount, starved, ctx>>

Uncount(r) ==
  /\ Ends(r, "Uncount")
  /\ IF RestartRule = "R2p"
       THEN mcount' = [mcount EXCEPT ![MapOf(Turn(r))] = @ - 1] /\ UNCHANGED qcount
       ELSE qcount' = [qcount EXCEPT ![QueueOf(Turn(r))] = @ - 1] /\ UNCHANGED mcount
  /\ GoesTo(r, "SeesDispatch")
  /\ SayEnd("Uncount", r)
  /\ SameRuns
  /\ UNCHANGED <<sched, disp, restart, tags, waiters, starved, ctx>>

(* It has work, and is run; where hctxs take turns that was all. *)
Runs(r) ==
  /\ AskRuns({Turn(r)})
  /\ IF RestartRule \in {"R0", "all"} THEN Onward(r) ELSE Done(r)

SeesDispatch(r) ==
  /\ Ends(r, "SeesDispatch")
  /\ IF disp[Turn(r)] # <<>> THEN Runs(r) ELSE GoesTo(r, "SeesWork") /\ SameRuns
  /\ SayEnd("SeesDispatch", r)
  /\ UNCHANGED <<sched, disp, restart, tags, waiters, qcount, mcount, starved, ctx>>

SeesWork(r) ==
  /\ Ends(r, "SeesWork")
  /\ IF sched[QueueOf(Turn(r))] # <<>> THEN Runs(r) ELSE Onward(r) /\ SameRuns
  /\ SayEnd("SeesWork", r)
  /\ UNCHANGED <<sched, disp, restart, tags, waiters, qcount, mcount, starved, ctx>>

-----------------------------------------------------------------------------
LabelsNext ==
  \/ (\E r \in Requests, h \in Hctx : LInsertSched(r, h))
  \/ (\E r \in Requests, h \in Hctx : LInsertBypass(r, h))
  \/ (\E h \in Hctx, c \in Ctx : LStart(h, c))
  \/ (\E h \in Hctx, c \in Ctx : StartOne(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LMark(h, c))
  \/ (\E h \in Hctx, c \in Ctx : SetMark(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LCount(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LIssue(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Miss(h, c))
  \/ (\E h \in Hctx, c \in Ctx : InLine(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Line(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LRetry(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Stale(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Leave(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LPutBack(h, c))
  \/ (\E h \in Hctx, c \in Ctx : Recheck_(h, c))
  \/ (\E h \in Hctx, c \in Ctx : StillInLine(h, c))
  \/ (\E h \in Hctx, c \in Ctx : LAsk(h, c))
  \/ (\E r \in Requests : LFree(r))
  \/ (\E r \in Requests : Waking(r))
  \/ (\E r \in Requests : Wake(r))
  \/ (\E r \in Requests : Gate(r))
  \/ (\E r \in Requests : Clear(r))
  \/ (\E r \in Requests : ClearFlag(r))
  \/ (\E r \in Requests : Visit(r))
  \/ (\E r \in Requests : Unmark(r))
  \/ (\E r \in Requests : Uncount(r))
  \/ (\E r \in Requests : SeesDispatch(r))
  \/ (\E r \in Requests : SeesWork(r))

LabelsSpec == LabelsInit /\ [][LabelsNext]_labelVars

-----------------------------------------------------------------------------
(* Counters equal the marked hctxs, except while a mark is counted in or out. *)
LabelsCountersExact ==
  LET half == IF RestartRule = "R0" THEN {"Visit", "Unmark"} ELSE {"Uncount"}
  IN (\A r \in Requests : ending[r].at \notin half) => CountersExact

(* To be violated, as NeverAllDone: nothing is left to be done. *)
LabelsNeverAllDone == ~(Quiet /\ \A r \in Requests : Fresh(r))

(* What traces show of a state; `under` are the requests that are neither new nor done. *)
LabelsObserved ==
  LET under == {r \in Requests : ~Fresh(r)}
  IN [tags |-> tags, restart |-> restart, pending |-> pending,
      line |-> [m \in Map |-> Range(waiters[m])], sched |-> sched, disp |-> disp,
      qcount |-> qcount, mcount |-> mcount, under |-> [r \in under |-> state[r]]]
=============================================================================
