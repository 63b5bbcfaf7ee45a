----------------------------- MODULE MCQueueLife ------------------------------
(* What TLC checks: all there is to it is in variants/, as processes and queues are not permuted. *)
EXTENDS QueueLife
=============================================================================
