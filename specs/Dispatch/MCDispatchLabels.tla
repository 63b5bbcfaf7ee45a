-------------------------- MODULE MCDispatchLabels ---------------------------
(* What TLC needs besides the constants of variants/-labels: each request comes once, in order. *)
EXTENDS DispatchLabels

Lowest(r) ==
  /\ r \notin under \union done
  /\ \A s \in Request : s \notin under \union done => r <= s

labelView == <<view, under, late>>
=============================================================================
