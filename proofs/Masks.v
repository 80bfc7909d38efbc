(** * Lemma softmax: unmasked, causal, the first columns, a matrix as mask

    The theorems are [unmasked_softmax_correct] (with the cases [plain_softmax_correct] and
    [stable_softmax_correct]), [causal_softmax_correct], [columns_softmax_correct] and
    [masked_softmax_correct]. Except for the two cases, each theorem holds for all shapes, with and
    without the row maximum, for e and for every base > 1. [softmax_of] of [Softmax.v] defines the
    softmax. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums.
Open Scope R_scope.

(** The mask is the matrix after the scores. A head copies it to the positions of the scores. *)
Definition masked_softmax (stable : bool) (x : exponential) (r c : nat) : sop :=
  softmax stable x
    (kept_by r c (source (copied (View Tokens r c (Int (r * c)) c 1)))) c Tokens.

Section Masks.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation says := (says N tokens).
  Notation holds := (holds N tokens context).
  Variables (r c : nat) (x : exponential) (stable : bool) (s : sop) (M : nat -> nat -> R).
  Hypothesis columns_exist : (0 < c)%nat.
  Hypothesis room : (r * c <= N)%nat.
  Hypothesis base : valid x.
  Hypothesis scores : holds (row_major s r c) M.

  (** Lemma softmax: base^(Mᵢⱼ), divided by the sum of its row. *)
  Theorem unmasked_softmax_correct :
    holds (row_major (softmax stable x (inside r c) c s) r c)
      (fun i j => raise x (M i j) / sum c (fun t => raise x (M i t))).
  Proof.
    eapply holds_ext; [|apply (softmax_correct N tokens context r c x _ (fun q => Nat.ltb q (r * c))
      columns_exist room base (fun e _ => says_inside N tokens e r c)
      (fun q => proj1 (Nat.ltb_lt _ _)) stable s M scores)].
    intros i j I J. simpl in I, J. unfold softmax_of.
    assert (K : forall t, (t < c)%nat -> Nat.ltb (i * c + t) (r * c) = true)
      by (intros; apply Nat.ltb_lt; nia).
    rewrite K by exact J. f_equal. apply sum_ext. intros t T. now rewrite K.
  Qed.

  (** Entries with a second condition. *)
  Lemma further_softmax_correct further (keep : nat -> nat -> bool) (K : nat -> bool) :
    (forall e, context e -> says e further K) ->
    (forall i j, (i < r)%nat -> (j < c)%nat -> K (i * c + j)%nat = keep i j) ->
    holds (row_major (softmax stable x (Binary And (inside r c) further) c s) r c)
      (fun i j => softmax_of x (keep i) c (M i) j).
  Proof.
    intros S E.
    eapply holds_ext; [|apply (softmax_correct N tokens context r c x _
      (fun q => Nat.ltb q (r * c) && K q) columns_exist room base) with (stable := stable) (M := M)].
    - intros i j I J. simpl in I, J.
      assert (A : forall t, (t < c)%nat ->
        Nat.ltb (i * c + t) (r * c) && K (i * c + t)%nat = keep i t).
      { intros t T. rewrite (proj2 (Nat.ltb_lt _ _)) by nia. simpl. now apply E. }
      unfold softmax_of. rewrite A by exact J. destruct (keep i j); [|reflexivity].
      f_equal. apply sum_ext. intros t T. now rewrite A.
    - intros e C. apply says_and; [apply says_inside|now apply S].
    - intros q Q. apply andb_true_iff in Q. now apply Nat.ltb_lt.
    - exact scores.
  Qed.

  Lemma index_row_of e : index N tokens e (row_index c) (fun q => q / c)%nat.
  Proof. now apply index_row_index. Qed.
  Lemma index_column_of e : index N tokens e (column_index c) (fun q => q mod c)%nat.
  Proof. apply index_modulo; [apply gives_indices|apply index_constant|auto]. Qed.

  (** Causal mask: row i keeps the columns j ≤ i. *)
  Theorem causal_softmax_correct :
    holds (row_major (softmax stable x (causal r c) c s) r c)
      (fun i j => softmax_of x (fun t => Nat.leb t i) c (M i) j).
  Proof.
    apply (further_softmax_correct _ (fun i t => Nat.leb t i) (fun q => Nat.leb (q mod c) (q / c))).
    - intros e _.
      apply (says_ext N tokens e _ (fun q => compare Le (INR (q mod c)) (INR (q / c)))).
      + intros q _. unfold compare. destruct (Nat.leb_spec (q mod c) (q / c)),
          (Rle_dec (INR (q mod c)) (INR (q / c))) as [L|L]; auto; exfalso.
        * now apply L, le_INR.
        * apply INR_le in L. lia.
      + apply says_compare; [apply index_column_of|apply index_row_of].
    - intros i j I J. now destruct (divmod i j c J) as [-> ->].
  Qed.

  (** The first m columns: m may be a token. *)
  Theorem columns_softmax_correct count m :
    (forall e, context e -> index N tokens e count (fun _ => m)) ->
    holds (row_major (softmax stable x (first_columns r c count) c s) r c)
      (fun i j => softmax_of x (fun t => Nat.ltb t m) c (M i) j).
  Proof.
    intros C. apply (further_softmax_correct _ (fun i t => Nat.ltb t m) (fun q => Nat.ltb (q mod c) m)).
    - intros e E. apply says_less; [apply index_column_of|now apply C].
    - intros i j I J. now destruct (divmod i j c J) as [_ ->].
  Qed.

  (** A matrix as mask: the entries at which it is not 0. *)
  Theorem masked_softmax_correct mask K :
    holds (row_major mask r c) K ->
    holds (row_major (softmax stable x (kept_by r c mask) c s) r c)
      (fun i j => softmax_of x (fun t => compare Ne (K i t) 0) c (M i) j).
  Proof.
    intros H. apply holds_compact in H. destruct H as [_ [f [F H]]].
    apply (further_softmax_correct _ (fun i t => compare Ne (K i t) 0)
             (fun q => compare Ne (f q) 0)).
    - intros e E. apply says_compare; [now apply F|apply (gives_integer N tokens e 0)].
    - intros i j I J. now rewrite (proj2 (H i j I J)).
  Qed.
End Masks.

(** The two forms of the paper's lemma: without and with the subtraction of the row maximum. *)
Theorem plain_softmax_correct N tokens context r c s M :
  (0 < c)%nat -> (r * c <= N)%nat -> holds N tokens context (row_major s r c) M ->
  holds N tokens context (row_major (plain_softmax r c s) r c)
    (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
Proof. intros C RC H. now apply (unmasked_softmax_correct N tokens context r c Natural false s M). Qed.

Theorem stable_softmax_correct N tokens context r c s M :
  (0 < c)%nat -> (r * c <= N)%nat -> holds N tokens context (row_major s r c) M ->
  holds N tokens context (row_major (stable_softmax r c s) r c)
    (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
Proof. intros C RC H. now apply (unmasked_softmax_correct N tokens context r c Natural true s M). Qed.
