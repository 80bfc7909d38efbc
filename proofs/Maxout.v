(** * Maxout: the maximum of each group of columns, with one hard-attention head, for all shapes

    The theorem, [maxout_correct]: entry (i, j) is one of the g entries of its group, and no entry of
    the group is larger. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Heads Lines GroupSort.
Open Scope R_scope.

(** ** Program *)

(** The maximum at every position of its group; the result consists of every g-th column. *)
Definition winner (g : nat) (s : sop) : sop := Aggregate (greatest (same_row g) s) s (Integer 0).
Definition maxout (r k g : nat) (s : sop) : matrix := View (winner g s) r k (Int 0) (k * g) g.

(** ** Meaning *)

Section Maxout.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Variables (r k g : nat).
  Hypothesis group_exists : (0 < g)%nat.
  Hypothesis room : (r * (k * g) <= N)%nat.

  Lemma best_spec f keys q : best (fun i => Num (f i)) keys q = true <->
    In q keys /\ forall i, In i keys -> f i <= f q.
  Proof.
    unfold best. rewrite andb_true_iff, existsb_exists, forallb_forall. split.
    - intros [[i [I E]] A]. apply Nat.eqb_eq in E. subst i. split; [exact I|].
      intros j J. specialize (A j J). unfold compare, number in A.
      destruct (Rge_dec (f q) (f j)); [lra|discriminate].
    - intros [I A]. split; [exists q; now rewrite Nat.eqb_refl|].
      intros j J. specialize (A j J). unfold compare, number.
      destruct (Rge_dec (f q) (f j)); [reflexivity|lra].
  Qed.

  (** In each group, one entry precedes all others: the largest entry, or the leftmost of several
      largest entries. *)
  Lemma leftmost_greatest f group : exists t, (t < g)%nat /\
    forall u, (u < g)%nat -> f (group * g + u)%nat < f (group * g + t)%nat \/
      (f (group * g + u)%nat = f (group * g + t)%nat /\ (t <= u)%nat).
  Proof.
    destruct (rank_surjective f g group_exists group 0 group_exists) as [t [T E]].
    exists t. split; [exact T|]. intros u U. destruct (Nat.eq_dec u t) as [->|D]; [right; auto|].
    assert (G : ((group * g + t) / g = (group * g + u) / g)%nat)
      by (destruct (divmod group t g T) as [-> _], (divmod group u g U) as [-> _]; reflexivity).
    destruct (before_total f (group * g + t) (group * g + u) ltac:(lia)) as [B|B].
    - pose proof (rank_order f g group_exists _ _ G B). lia.
    - apply before_spec in B. destruct B as [B|[B1 B2]]; [left; lra|right; split; [lra|lia]].
  Qed.

  Theorem maxout_correct context s M : (0 < k)%nat ->
    holds N tokens context (row_major s r (k * g)) M ->
    exists K, holds N tokens context (maxout r k g s) K /\
      forall i j, (i < r)%nat -> (j < k)%nat ->
        (exists t, (t < g)%nat /\ K i j = M i (j * g + t)%nat) /\
        forall t, (t < g)%nat -> M i (j * g + t)%nat <= K i j.
  Proof.
    intros K0 H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    set (first := fun q => best (fun i => Num (f i)) (selected N (in_row g) q)).
    set (second := fun q => best (fun i => Num (- INR i)) (selected N first q)).
    assert (GW : forall e, context e -> gives e (winner g s) (fun q => mean (map f (selected N second q)))).
    { intros e E. apply gives_aggregate; [|now apply F]. apply selects_best; [apply selects_best|].
      - now apply selects_same_row.
      - now apply F.
      - apply gives_negate, gives_indices. }
    destruct (finite_choice (r * k) (fun p t => (t < g)%nat /\ forall u, (u < g)%nat ->
      f (p * g + u)%nat < f (p * g + t)%nat \/ (f (p * g + u)%nat = f (p * g + t)%nat /\ (t <= u)%nat)) 0%nat)
      as [top TOP]; [intros p _; apply leftmost_greatest|].
    assert (WIN : forall p, (p < r * k)%nat ->
      mean (map f (selected N second (p * g)%nat)) = f (p * g + top p)%nat).
    { intros p P. destruct (TOP p P) as [T W]. assert (B : (p * g + g <= N)%nat) by nia.
      assert (IN : forall i, In i (selected N (in_row g) (p * g)) <-> exists u, (u < g)%nat /\ i = (p * g + u)%nat).
      { intros i. rewrite (selected_row N (r * k) g (p * g)) by nia. rewrite Nat.div_mul by lia.
        rewrite in_map_iff. split.
        - intros [u [<- U]]. apply in_seq in U. exists u. split; [lia|reflexivity].
        - intros [u [U ->]]. exists u. split; [reflexivity|]. apply in_seq. lia. }
      assert (FIRST : forall i, first (p * g)%nat i = true <->
        exists u, (u < g)%nat /\ i = (p * g + u)%nat /\ f i = f (p * g + top p)%nat).
      { intros i. unfold first. rewrite best_spec, IN. split.
        - intros [[u [U ->]] A]. exists u. repeat split; auto.
          specialize (A (p * g + top p)%nat (proj2 (IN _) (ex_intro _ (top p) (conj T eq_refl)))).
          destruct (W u U) as [L|[L _]]; lra.
        - intros [u [U [-> E]]]. split; [now exists u|]. intros j J. apply IN in J. destruct J as [v [V ->]].
          destruct (W v V) as [L|[L _]]; lra. }
      assert (ONE : selected N second (p * g) = [(p * g + top p)%nat]).
      { rewrite <- (selected_one N (fun _ => p * g + top p)%nat (p * g)) by lia.
        apply selected_ext. intros i I. destruct (Nat.eqb_spec i (p * g + top p)) as [->|D].
        - unfold second. apply best_spec. split.
          + apply filter_In. split; [apply in_seq; lia|]. apply FIRST. exists (top p). auto.
          + intros j J. apply selected_below in J. destruct J as [_ J]. apply FIRST in J.
            destruct J as [u [U [-> E]]]. destruct (W u U) as [L|[_ L]]; [lra|].
            apply Ropp_le_contravar, le_INR. lia.
        - destruct (second (p * g)%nat i) eqn:S; [|reflexivity]. exfalso. unfold second in S.
          apply best_spec in S. destruct S as [S1 S2]. apply selected_below in S1. destruct S1 as [_ S1].
          apply FIRST in S1. destruct S1 as [u [U [-> E]]]. destruct (W u U) as [L|[_ L]]; [lra|].
          specialize (S2 (p * g + top p)%nat). assert (X : In (p * g + top p)%nat (selected N first (p * g))).
          { apply filter_In. split; [apply in_seq; lia|]. apply FIRST. exists (top p). auto. }
          specialize (S2 X). apply Ropp_le_cancel, INR_le in S2. lia. }
      rewrite ONE. unfold mean; simpl. lra. }
    exists (fun i j => f ((i * k + j) * g + top (i * k + j)%nat)%nat). split.
    - split; [exact E0|]. exists (fun q => mean (map f (selected N second q))), 0%nat.
      split; [exact GW|split; [intros; apply index_int|]]. intros i j I J. simpl in I, J. unfold address; simpl.
      replace (i * (k * g) + j * g)%nat with ((i * k + j) * g)%nat by ring.
      assert (P : (i * k + j < r * k)%nat) by nia.
      assert (B : ((i * k + j) * g < r * k * g)%nat) by (apply Nat.mul_lt_mono_pos_r; lia).
      split; [rewrite <- Nat.mul_assoc in B; lia|]. now apply WIN.
    - intros i j I J. destruct (TOP (i * k + j)%nat ltac:(nia)) as [T W].
      assert (V : forall u, (u < g)%nat -> f ((i * k + j) * g + u)%nat = M i (j * g + u)%nat).
      { intros u U. destruct (H i (j * g + u)%nat I ltac:(nia)) as [_ V]. rewrite <- V. f_equal. ring. }
      rewrite V by exact T. split; [eauto|]. intros t U. destruct (W t U) as [L|[L _]]; rewrite !V in L by assumption; lra.
  Qed.
End Maxout.
