(** * The corrected hierarchy, and causal attention: U with a mask, for all orders

    [masked_U n d dv] attends only to the first m keys, and m is an additional token. The theorems are
    [hierarchy_simulates] (Corollary hierarchy: a smaller T, of order (m, e, f), runs exactly on a
    larger U, with matrices padded with zeros) and [causal_U_simulates] (query i attends to the keys
    up to i). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Lines Universal.
Open Scope R_scope.

(** ** Programs *)

(** The number of keys follows V. *)
Definition masked_U n d dv : sop :=
  let count := entry (block 1 1 (n * d + d * d + d * dv)) (Int 0) (Int 0) in
  source (attention_head 1 (first_columns n n count) (X n d) (A n d) (V n d dv)).
Definition causal_U n d dv : sop :=
  source (attention_head 1 (causal n n) (X n d) (A n d) (V n d dv)).

(** ** Meaning *)

(** A matrix of r rows and c columns, in the corner of a larger matrix of zeros. *)
Definition padded (r c : nat) (M : nat -> nat -> R) (i j : nat) : R :=
  if Nat.ltb i r && Nat.ltb j c then M i j else 0.

Lemma sum_shorter n m f : (m <= n)%nat -> (forall t, (m <= t)%nat -> (t < n)%nat -> f t = 0) ->
  sum n f = sum m f.
Proof.
  intros L Z. induction n as [|n IH]; [now replace m with 0%nat by lia|].
  destruct (Nat.eq_dec m (S n)) as [->|D]; [reflexivity|].
  simpl. rewrite IH by (lia || (intros; apply Z; lia)). rewrite (Z n) by lia. lra.
Qed.

Lemma padded_inside r c M i j : (i < r)%nat -> (j < c)%nat -> padded r c M i j = M i j.
Proof. intros I J. unfold padded. now rewrite (proj2 (Nat.ltb_lt _ _) I), (proj2 (Nat.ltb_lt _ _) J). Qed.
Lemma padded_right r c M i j : (c <= j)%nat -> padded r c M i j = 0.
Proof. intros J. unfold padded. rewrite (proj2 (Nat.ltb_ge _ _) J). now rewrite andb_false_r. Qed.
Lemma padded_below r c M i j : (r <= i)%nat -> padded r c M i j = 0.
Proof. intros I. unfold padded. now rewrite (proj2 (Nat.ltb_ge _ _) I). Qed.

(** A product of padded matrices contains the product in its corner. *)
Lemma dot_padded d e r c A B i j : (e <= d)%nat -> (i < r)%nat -> (j < c)%nat ->
  dot d (padded r e A) (padded e c B) i j = dot e A B i j.
Proof.
  intros L I J. unfold dot. rewrite (sum_shorter d e) by
    (assumption || (intros t T _; rewrite padded_right by exact T; lra)).
  apply sum_ext. intros t T. now rewrite !padded_inside.
Qed.

Lemma score_padded d e m x a i l : (e <= d)%nat -> (i < m)%nat -> (l < m)%nat ->
  score d (padded m e x) (padded e e a) i l = score e x a i l.
Proof.
  intros L I J. unfold score, dot at 1 3.
  rewrite (sum_shorter d e) by (assumption || (intros t T _; rewrite (padded_right m e x l t T); lra)).
  apply sum_ext. intros t T. rewrite (padded_inside m e x l t J T). f_equal.
  now apply dot_padded.
Qed.

Section Masked.
  Variables (N n d dv : nat) (tokens : nat -> value) (x a v : nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv)%nat.
  Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_A : tokens_hold N tokens d d (n * d) a.
  Hypothesis tokens_V : tokens_hold N tokens d dv (n * d + d * d) v.

  Lemma masked_head kept w :
    holds N tokens closed (row_major (softmax true Natural kept n (scores 1 (X n d) (A n d))) n n) w ->
    holds N tokens closed (row_major (source (attention_head 1 kept (X n d) (A n d) (V n d dv))) n dv)
      (dot n w (dot d x v)).
  Proof.
    intros W. eapply (attention_head_correct N tokens closed 1 n d dv);
      first [exact W|now apply closed_block|lia|repeat split; apply closed_keeps|now split].
  Qed.

  Lemma scores_hold : holds N tokens closed (row_major (scores 1 (X n d) (A n d)) n n) (score d x a).
  Proof.
    apply (holds_scores N tokens closed 1 n d dv _ _ (V n d dv));
      first [now apply closed_block|lia|repeat split; apply closed_keeps|now split].
  Qed.

  (** Causal attention: query i attends to the keys 0 … i. *)
  Theorem causal_U_simulates :
    exists y, run N tokens (causal_U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (masked_attention (fun i l => Nat.leb l i) n d x a v i j).
  Proof.
    apply run_of. unfold causal_U, masked_attention. apply masked_head.
    apply (causal_softmax_correct N tokens closed n n Natural true); try lia; [exact I|apply scores_hold].
  Qed.

  Variable m : nat.
  Hypothesis tokens_m : tokens_hold N tokens 1 1 (n * d + d * d + d * dv) (fun _ _ => INR m).

  (** U attends to the first m keys. *)
  Theorem masked_U_simulates :
    exists y, run N tokens (masked_U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (masked_attention (fun _ l => Nat.ltb l m) n d x a v i j).
  Proof.
    apply run_of. unfold masked_U, masked_attention. apply masked_head.
    apply (columns_softmax_correct N tokens closed n n Natural true); try lia; [exact I|apply scores_hold|].
    intros e _. destruct (closed_block N tokens blanks _ _ _ _ tokens_m) as [_ [f [o [F [O H]]]]].
    destruct (H 0 0 ltac:(simpl; lia) ltac:(simpl; lia))%nat as [L E].
    eapply gives_ext; [|apply (gives_entry N tokens e _ _ _ o (fun _ => 0)%nat (fun _ => 0)%nat f);
      [now apply O|apply index_int|apply index_int|now apply F|intros; exact L]].
    intros q Q. exact E.
  Qed.
End Masked.

(** *** Corollary hierarchy, corrected: T of order (m, e, f) on U of order (n, d, d_v) *)
Theorem hierarchy_simulates N n d dv m e f tokens x a v :
  (0 < m <= n)%nat -> (0 < e <= d)%nat -> (0 < f <= dv)%nat ->
  (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat -> numbers N tokens ->
  tokens_hold N tokens n d 0 (padded m e x) -> tokens_hold N tokens d d (n * d) (padded e e a) ->
  tokens_hold N tokens d dv (n * d + d * d) (padded e f v) ->
  tokens_hold N tokens 1 1 (n * d + d * d + d * dv) (fun _ _ => INR m) ->
  exists y, run N tokens (masked_U n d dv) = Some y /\
    forall i j, (i < m)%nat -> (j < f)%nat -> y (i * dv + j)%nat = Num (attention m e x a v i j).
Proof.
  intros M E F ROOM NUM TX TA TV TM.
  destruct (masked_U_simulates N n d dv tokens _ _ _ ltac:(lia) ROOM NUM TX TA TV m TM) as [y [Y W]].
  exists y. split; [exact Y|]. intros i j I J. rewrite W by lia. f_equal.
  unfold masked_attention, attention, dot at 1 3.
  rewrite (sum_shorter n m); [|lia|].
  - apply sum_ext. intros l L. rewrite dot_padded by lia. f_equal.
    unfold softmax_of. rewrite (proj2 (Nat.ltb_lt _ _) L). simpl raise.
    rewrite score_padded by lia. f_equal. rewrite (sum_shorter n m); [|lia|].
    + apply sum_ext. intros t T. rewrite (proj2 (Nat.ltb_lt _ _) T). now rewrite score_padded by lia.
    + intros t T _. now rewrite (proj2 (Nat.ltb_ge _ _) T).
  - intros t T _. unfold softmax_of. rewrite (proj2 (Nat.ltb_ge _ _) T). lra.
Qed.
