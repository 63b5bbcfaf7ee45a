---------------------------- MODULE TraceQueueLife ----------------------------
(* Accepts exactly the behaviours in TraceData, and says of each how far it came. TraceData is  *)
(* written by `blksim check` out of schedules, whose constants are the configuration's.          *)
EXTENDS QueueLife, Sequences, TraceData, TLC

VARIABLES
  trace,   \* which of them
  steps    \* how many of its steps were accepted

TraceInit ==
  /\ Init
  /\ trace \in 1..Len(Traces)
  /\ steps = 0

(* The specification takes the step of the trace, with the values that the trace shows. *)
TraceNext ==
  /\ steps < Len(Traces[trace])
  /\ Next
  /\ last' = Traces[trace][steps + 1].last
  /\ (\A name \in DOMAIN Traces[trace][steps + 1].observed :
        Traces[trace][steps + 1].observed[name] = Observed[name]')
  /\ steps' = steps + 1
  /\ UNCHANGED trace
  /\ PrintT(<<"accepted", trace, steps + 1>>)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, steps>>
=============================================================================
