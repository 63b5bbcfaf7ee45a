----------------------------- MODULE MCDispatch ------------------------------
(* What TLC checks: all there is to it is in variants/, as requests and CPUs are not permuted. *)
EXTENDS Dispatch
=============================================================================
