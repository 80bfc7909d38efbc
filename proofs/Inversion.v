(** * Cofactors, determinant and inverse of order 3 (Lemma inversion, Algorithm 5, Listings 7 and 8)

    The theorems are [cofactor_correct], [determinant_correct], [paper_determinant_correct] and
    [inverse_correct]. For det ≠ 0, the paper's program has a value, which contains the inverse:
    A·A⁻¹ = I and A⁻¹·A = I. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Heads Sequences Lines.
Open Scope R_scope.

(** ** Programs *)

(** Entry (i + u, j + v) of a matrix of order 3, indices modulo 3. *)
Definition around (u v : nat) (m : matrix) : sop :=
  entry m (At (Binary Modulo (Binary Add (row_index 3) (integer u)) (integer 3)))
    (At (Binary Modulo (Binary Add (column_index 3) (integer v)) (integer 3))).
Definition cofactors (m : matrix) : sop :=
  IfElse (inside 3 3)
    (Binary Add (Binary Multiply (around 1 1 m) (around 2 2 m))
       (Unary Negate (Binary Multiply (around 1 2 m) (around 2 1 m))))
    (integer 0).

(** The sum of the first row times its cofactors, with one head and with the paper's two heads. *)
Definition determinant (s : sop) : sop :=
  Binary Multiply (integer 3)
    (Aggregate (Select Lt Indices (integer 3))
       (Binary Multiply s (cofactors (row_major s 3 3))) (Integer 0)).
Definition paper_determinant (s : sop) : sop :=
  Binary Multiply Length
    (Aggregate (Select Eq (integer 1) (integer 1))
       (Aggregate (SelectorAnd (Select Lt Indices (integer 3)) (Select Eq Indices Indices))
          (Binary Multiply s (cofactors (row_major s 3 3))) (Integer 0)) (Integer 0)).

Definition inverse (s : sop) : sop :=
  source (transpose
    (row_major (Binary Divide (cofactors (row_major s 3 3)) (paper_determinant s)) 3 3)).

(** ** Meaning *)

Definition cofactor (M : nat -> nat -> R) (i j : nat) : R :=
  M ((i + 1) mod 3)%nat ((j + 1) mod 3)%nat * M ((i + 2) mod 3)%nat ((j + 2) mod 3)%nat
  - M ((i + 1) mod 3)%nat ((j + 2) mod 3)%nat * M ((i + 2) mod 3)%nat ((j + 1) mod 3)%nat.
Definition det (M : nat -> nat -> R) : R := sum 3 (fun j => M 0%nat j * cofactor M 0 j).
Definition identity (i j : nat) : R := if Nat.eqb i j then 1 else 0.

(** The rule of Sarrus: this is the determinant. *)
Lemma det_sarrus M : det M =
  M 0%nat 0%nat * M 1%nat 1%nat * M 2%nat 2%nat + M 0%nat 1%nat * M 1%nat 2%nat * M 2%nat 0%nat
  + M 0%nat 2%nat * M 1%nat 0%nat * M 2%nat 1%nat - M 0%nat 2%nat * M 1%nat 1%nat * M 2%nat 0%nat
  - M 0%nat 0%nat * M 1%nat 2%nat * M 2%nat 1%nat - M 0%nat 1%nat * M 1%nat 0%nat * M 2%nat 2%nat.
Proof. unfold det, cofactor; simpl. ring. Qed.

(** The transposed cofactors, divided by the determinant, are the left and the right inverse. *)
Lemma adjugate_inverts M i j : (i < 3)%nat -> (j < 3)%nat -> det M <> 0 ->
  dot 3 M (fun i j => cofactor M j i / det M) i j = identity i j /\
  dot 3 (fun i j => cofactor M j i / det M) M i j = identity i j.
Proof.
  intros I J D. rewrite det_sarrus in *. unfold dot, cofactor, identity.
  destruct i as [|[|[|i]]], j as [|[|[|j]]]; try lia; simpl; split; field; exact D.
Qed.

Section Inversion.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation holds := (holds N tokens context).
  Hypothesis room : (9 <= N)%nat.

  Theorem cofactor_correct m M : rows m = 3%nat -> columns m = 3%nat ->
    holds m M -> holds (row_major (cofactors m) 3 3) (cofactor M).
  Proof.
    intros R3 C3 [E0 [f [o [F [O H]]]]].
    set (at_ := fun u v q => f (address m o ((q / 3 + u) mod 3) ((q mod 3 + v) mod 3))).
    assert (A : forall e u v, context e -> gives e (around u v m) (at_ u v)).
    { intros e u v E. apply (gives_entry N tokens e m _ _ o
        (fun q => (q / 3 + u) mod 3)%nat (fun q => (q mod 3 + v) mod 3)%nat); auto.
      - apply index_mod; [lia|]. apply index_add; [now apply index_row_index; lia|apply index_constant].
      - apply index_mod; [lia|]. apply index_add; [|apply index_constant].
        apply index_mod; [lia|apply gives_indices].
      - intros q Q. apply H; rewrite ?R3, ?C3; apply Nat.mod_upper_bound; lia. }
    apply holds_compact. split; [exact E0|].
    exists (fun q => if Nat.ltb q (3 * 3) then at_ 1%nat 1%nat q * at_ 2%nat 2%nat q
                     + - (at_ 1%nat 2%nat q * at_ 2%nat 1%nat q) else 0). split.
    - intros e E. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply gives_add; [|apply gives_negate]; apply gives_multiply; auto.
    - intros i j I J. assert (L : (i * 3 + j < 3 * 3)%nat) by lia. split; [lia|].
      rewrite (proj2 (Nat.ltb_lt _ _) L). unfold at_. destruct (divmod i j 3 J) as [-> ->].
      assert (V : forall u v, f (address m o ((i + u) mod 3) ((j + v) mod 3)) = M ((i + u) mod 3)%nat ((j + v) mod 3)%nat)
        by (intros; apply H; rewrite ?R3, ?C3; apply Nat.mod_upper_bound; lia).
      rewrite !V. unfold cofactor. ring.
  Qed.

  (** The products of the first row with its cofactors, at the first three positions. *)
  Lemma holds_products s M : holds (row_major s 3 3) M ->
    exists p, (forall e, context e -> gives e (Binary Multiply s (cofactors (row_major s 3 3))) p) /\
      sum 3 p = det M.
  Proof.
    intros H. pose proof (multiply_correct N tokens context s _ 3 3 M _ H
      (cofactor_correct (row_major s 3 3) M eq_refl eq_refl H)) as P.
    apply holds_compact in P. destruct P as [_ [p [P V]]]. exists p. split; [exact P|].
    apply sum_ext. intros j J. destruct (V 0%nat j ltac:(lia) J) as [_ E]. exact E.
  Qed.

  Lemma selected_first_three q : selected N (fun q k => Nat.ltb k 3) q = [0; 1; 2]%nat.
  Proof.
    transitivity (selected N (fun q i => Nat.ltb i 3 && Nat.eqb 0 q) 0).
    - apply selected_at. intros k K. simpl. now rewrite andb_true_r.
    - rewrite selected_first by lia. reflexivity.
  Qed.

  Theorem determinant_correct s M : holds (row_major s 3 3) M ->
    forall e, context e -> gives e (determinant s) (fun _ => det M).
  Proof.
    intros H e E. destruct (holds_products s M H) as [p [P D]].
    eapply gives_ext; [|apply gives_multiply; [apply (index_constant N tokens e 3)|apply gives_aggregate;
      [apply selects_less; [apply gives_indices|apply (index_constant N tokens e 3)]|exact (P e E)]]].
    intros q Q. cbv beta. rewrite selected_first_three, <- D. unfold mean; simpl. field.
  Qed.

  Theorem paper_determinant_correct s M : holds (row_major s 3 3) M ->
    forall e, context e -> gives e (paper_determinant s) (fun _ => det M).
  Proof.
    intros H e E. destruct (holds_products s M H) as [p [P D]].
    pose proof (gives_indices N tokens e) as II.
    assert (MASKED : gives e (Aggregate (SelectorAnd (Select Lt Indices (integer 3)) (Select Eq Indices Indices))
        (Binary Multiply s (cofactors (row_major s 3 3))) (Integer 0))
        (fun q => if Nat.ltb q 3 then p q else 0)).
    { eapply gives_ext; [|apply gives_aggregate; [apply selects_and;
        [apply selects_less; [exact II|apply (index_constant N tokens e 3)]|apply selects_equal; [exact II|exact II]]|
        exact (P e E)]].
      intros q Q. cbv beta. destruct (Nat.ltb q 3) eqn:L.
      - rewrite (selected_ext N _ (fun q k => Nat.eqb k q)), (selected_one N (fun q => q) q Q);
          [unfold mean; simpl; lra|].
        intros k K. destruct (Nat.eqb_spec k q) as [->|]; [now rewrite L|apply andb_false_r].
      - replace (selected N _ q) with (@nil nat); [unfold mean; simpl; unfold Rdiv; apply Rmult_0_l|].
        symmetry. apply filter_none. intros k K.
        destruct (Nat.eqb_spec k q) as [->|]; [now rewrite L|apply andb_false_r]. }
    eapply gives_ext; [|apply gives_multiply; [apply index_length|apply gives_aggregate;
      [apply (selects_equal N tokens e _ _ (fun _ => 1)%nat (fun _ => 1)%nat); apply (index_constant N tokens e 1)|
       exact MASKED]]].
    intros q Q. cbv beta.
    assert (ALL : selected N (fun _ _ => Nat.eqb 1 1) q = seq 0 N).
    { unfold selected. simpl Nat.eqb. generalize (seq 0 N). induction l; simpl; congruence. }
    rewrite ALL. unfold mean. rewrite map_length, seq_length.
    pose proof (total_map (fun q => if Nat.ltb q 3 then p q else 0) 0 N) as T. rewrite map_id in T. simpl in T.
    change (fun t : nat => (0 + t)%nat) with (fun t : nat => t) in T.
    rewrite T. rewrite <- D.
    transitivity (sum N (fun t => if Nat.ltb t 3 then p t else 0)).
    - field. apply not_0_INR. lia.
    - pose proof (sum_line N 3 (fun q => Nat.ltb q 3) (fun t => t) (fun q => q) p) as S. apply S.
      + intros k K. apply Nat.ltb_lt in K. auto.
      + intros t T0. rewrite (proj2 (Nat.ltb_lt t 3) T0). repeat split; lia.
  Qed.

  (** Lemma inversion, for det ≠ 0. *)
  Theorem inverse_correct s M : holds (row_major s 3 3) M -> det M <> 0 ->
    exists K, holds (row_major (inverse s) 3 3) K /\
      forall i j, (i < 3)%nat -> (j < 3)%nat ->
        dot 3 M K i j = identity i j /\ dot 3 K M i j = identity i j.
  Proof.
    intros H D. exists (fun i j => cofactor M j i / det M). split.
    - change (row_major (inverse s) 3 3) with (transpose
        (row_major (Binary Divide (cofactors (row_major s 3 3)) (paper_determinant s)) 3 3)).
      apply (transpose_correct N tokens context
        (row_major (Binary Divide (cofactors (row_major s 3 3)) (paper_determinant s)) 3 3)
        (fun i j => cofactor M i j / det M)); simpl; try lia.
      pose proof (cofactor_correct (row_major s 3 3) M eq_refl eq_refl H) as HC.
      apply holds_compact in HC. destruct HC as [E0 [f [F V]]].
      apply holds_compact. split; [exact E0|]. exists (fun q => f q / det M). split.
      + intros e E. apply (gives_divide N tokens e _ _ f (fun _ => det M)); auto.
        now apply paper_determinant_correct.
      + intros i j I J. destruct (V i j I J) as [L E]. split; [exact L|]. now rewrite E.
    - intros i j I J. now apply adjugate_inverts.
  Qed.
End Inversion.
