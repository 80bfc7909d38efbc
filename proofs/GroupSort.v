(** * GroupSort: each group of g entries in descending order, for all g that divide the size

    One selector computes the rank of every entry in its group, and one head moves the entry to its
    rank. The theorem, [groupsort_correct]: in each group, the result is a permutation of the entries
    ([moved] below is injective), in descending order. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith FinFun.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Heads Lines.
Open Scope R_scope.

(** ** Program *)

Definition rank_in_group (g : nat) (s : sop) : sop :=
  Width
    (SelectorAnd (same_row g)
       (SelectorOr (Select Gt s s) (SelectorAnd (Select Eq s s) (Select Lt Indices Indices)))).
Definition groupsort (r c g : nat) (s : sop) : sop :=
  let place := Binary Add (Binary Multiply (row_index g) (integer g)) (rank_in_group g s) in
  IfElse (inside r c) (Aggregate (Select Eq place Indices) s (Integer 0)) (integer 0).

(** ** Meaning *)

(** k precedes q: the value at k is larger, or the values are equal and k is to the left of q. *)
Definition before (f : nat -> R) (q k : nat) : bool :=
  compare Gt (f k) (f q) || (compare Eq (f k) (f q) && Nat.ltb k q).
Definition rank (f : nat -> R) (g q : nat) : nat :=
  length (filter (fun t => before f q (q / g * g + t)) (seq 0 g)).

Lemma before_spec f q k : before f q k = true <-> f k > f q \/ (f k = f q /\ (k < q)%nat).
Proof.
  unfold before, compare. rewrite orb_true_iff, andb_true_iff, Nat.ltb_lt.
  destruct (Rgt_dec (f k) (f q)), (Req_EM_T (f k) (f q)); split; intros H; auto;
    destruct H as [H|[H1 H2]]; try discriminate; try lra; auto.
Qed.

Lemma filter_less {T} (P Q : T -> bool) l x :
  (forall y, In y l -> P y = true -> Q y = true) -> In x l -> Q x = true -> P x = false ->
  (length (filter P l) < length (filter Q l))%nat.
Proof.
  intros S I QX PX.
  assert (LE : forall l, (forall y, In y l -> P y = true -> Q y = true) ->
    (length (filter P l) <= length (filter Q l))%nat).
  { induction l0 as [|y l0 IH]; intros S0; [simpl; lia|].
    assert (B : (length (filter P l0) <= length (filter Q l0))%nat) by (apply IH; intros; apply S0; simpl; auto).
    simpl. destruct (P y) eqn:PY; [rewrite (S0 y) by (simpl; auto); simpl; lia|].
    destruct (Q y); simpl; lia. }
  induction l as [|y l IH]; [destruct I|]. destruct I as [->|I].
  - simpl. rewrite PX, QX. simpl.
    assert (length (filter P l) <= length (filter Q l))%nat by (apply LE; intros; apply S; simpl; auto). lia.
  - assert (length (filter P l) < length (filter Q l))%nat by (apply IH; auto; intros; apply S; simpl; auto).
    simpl. destruct (P y) eqn:PY; [rewrite (S y) by (simpl; auto); simpl; lia|].
    destruct (Q y); simpl; lia.
Qed.

Section Ranks.
  Variables (f : nat -> R) (g : nat).
  Hypothesis group_exists : (0 < g)%nat.

  Lemma own_place q : exists t, In t (seq 0 g) /\ (q / g * g + t = q)%nat.
  Proof.
    exists (q mod g)%nat. rewrite in_seq. pose proof (Nat.mod_upper_bound q g ltac:(lia)).
    pose proof (Nat.div_mod q g ltac:(lia)). lia.
  Qed.

  Lemma rank_below q : (rank f g q < g)%nat.
  Proof.
    destruct (own_place q) as [t [T E]]. unfold rank. rewrite <- (seq_length g 0) at 2.
    assert (ALL : filter (fun _ => true) (seq 0 g) = seq 0 g)
      by (clear; generalize (seq 0 g); induction l; simpl; congruence).
    rewrite <- ALL at 2. apply filter_less with t; auto. rewrite E.
    destruct (before f q q) eqn:B; [|reflexivity]. apply before_spec in B.
    exfalso. destruct B as [B|[_ B]]; [lra|lia].
  Qed.

  (** An entry that precedes another entry of its group has a lower rank. *)
  Lemma rank_order q k : (q / g = k / g)%nat -> before f q k = true -> (rank f g k < rank f g q)%nat.
  Proof.
    intros G B. unfold rank. rewrite G. destruct (own_place k) as [t [T E]].
    apply filter_less with t; auto; rewrite ?E; auto.
    - intros u _ U. apply before_spec in B, U. apply before_spec.
      destruct U as [U|[U1 U2]], B as [B|[B1 B2]]; [left; lra|left; lra|left; lra|right; split; [lra|lia]].
    - destruct (before f k k) eqn:K; [|reflexivity]. apply before_spec in K.
      exfalso. destruct K as [K|[_ K]]; [lra|lia].
  Qed.

  Lemma before_total q k : q <> k -> before f q k = true \/ before f k q = true.
  Proof.
    intros D. rewrite !before_spec. destruct (Rtotal_order (f q) (f k)) as [L|[E|L]]; [left; left; lra| |right; left; lra].
    destruct (Nat.lt_trichotomy q k) as [|[|]]; [right|contradiction|left]; right; split; auto.
  Qed.

  Lemma rank_injective q k : (q / g = k / g)%nat -> rank f g q = rank f g k -> q = k.
  Proof.
    intros G E. destruct (Nat.eq_dec q k) as [|D]; [assumption|]. exfalso.
    destruct (before_total q k D) as [B|B].
    - pose proof (rank_order q k G B). lia.
    - pose proof (rank_order k q (eq_sym G) B). lia.
  Qed.

  (** Every place of a group is the rank of some entry. *)
  Lemma rank_surjective group p : (p < g)%nat ->
    exists t, (t < g)%nat /\ rank f g (group * g + t) = p.
  Proof.
    intros P. assert (D : forall t, (t < g)%nat -> ((group * g + t) / g = group)%nat) by (intros; now apply divmod).
    assert (S : bSurjective g (fun t => rank f g (group * g + t))).
    { apply bInjective_bSurjective.
      - intros t _. apply rank_below.
      - intros t u T U E. apply rank_injective in E; [lia|now rewrite !D]. }
    destruct (S p P) as [t [T E]]. eauto.
  Qed.
End Ranks.

Section GroupSort.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Variables (r c g : nat).
  Hypothesis sizes : (0 < c /\ 0 < g)%nat.
  Hypothesis room : (r * c <= N)%nat.
  Hypothesis groups : ((r * c) mod g = 0)%nat.

  Lemma whole_groups : (r * c = (r * c) / g * g)%nat.
  Proof. pose proof (Nat.div_mod (r * c) g ltac:(lia)). lia. Qed.
  Lemma group_below q : (q < r * c)%nat -> (q / g < (r * c) / g)%nat.
  Proof. intros Q. apply Nat.div_lt_upper_bound; [lia|]. pose proof whole_groups. lia. Qed.

  (** Ranks at the positions of the matrix, and arbitrary values elsewhere. *)
  Lemma gives_rank e s f : gives e s f ->
    gives e (rank_in_group g s)
      (fun q => INR (length (selected N (fun q k => in_row g q k && before f q k) q))).
  Proof.
    intros F. apply gives_width. apply selects_and; [apply selects_same_row; lia|].
    apply selects_or; [now apply selects_real|].
    apply selects_and; [now apply selects_real|].
    apply selects_less; apply gives_indices.
  Qed.

  Lemma rank_inside f q : (q < r * c)%nat ->
    length (selected N (fun q k => in_row g q k && before f q k) q) = rank f g q.
  Proof.
    intros Q. pose proof whole_groups as W. unfold rank.
    assert (BOTH : forall l, filter (fun k => in_row g q k && before f q k) l
                             = filter (before f q) (filter (in_row g q) l)).
    { induction l as [|k l IH]; [reflexivity|]. simpl. destruct (in_row g q k); simpl; [|exact IH].
      destruct (before f q k); now rewrite IH. }
    unfold selected. rewrite BOTH. fold (selected N (in_row g) q).
    rewrite (selected_row N ((r * c) / g) g q) by lia.
    generalize (seq 0 g). induction l as [|t l IH]; [reflexivity|]. simpl.
    destruct (before f q (q / g * g + t)); simpl; now rewrite IH.
  Qed.

  (** GroupSort: a permutation of each group in descending order. *)
  Lemma gives_groupsort s f :
    exists moved : nat -> nat,
      (forall e, gives e s f ->
         gives e (groupsort r c g s) (fun p => if Nat.ltb p (r * c) then f (moved p) else 0)) /\
      (forall p, (p < r * c)%nat -> (moved p < r * c)%nat /\ (moved p / g = p / g)%nat) /\
      (forall p q, (p < r * c)%nat -> (q < r * c)%nat -> moved p = moved q -> p = q) /\
      (forall p q, (p < r * c)%nat -> (q < r * c)%nat -> (p / g = q / g)%nat -> (p < q)%nat ->
         f (moved q) <= f (moved p)).
  Proof.
    pose proof whole_groups as W.
    assert (CHOICE : exists moved, forall p, (p < r * c)%nat ->
      (moved p / g = p / g)%nat /\ rank f g (moved p) = (p mod g)%nat /\ (moved p < r * c)%nat).
    { apply (finite_choice (r * c) (fun p m => (m / g = p / g)%nat /\ rank f g m = (p mod g)%nat /\ (m < r * c)%nat)
        0%nat).
      intros p P. pose proof (Nat.mod_upper_bound p g ltac:(lia)) as B.
      destruct (rank_surjective f g ltac:(lia) (p / g) (p mod g) B) as [t [T E]].
      exists (p / g * g + t)%nat. pose proof (group_below p P). repeat split; auto; [now apply divmod|nia]. }
    destruct CHOICE as [moved MV].
    assert (PLACE : forall k, (k < r * c)%nat -> forall p, (p < r * c)%nat ->
      (k / g * g + rank f g k = p)%nat <-> k = moved p).
    { intros k K p P. pose proof (rank_below f g ltac:(lia) k) as RB. destruct (MV p P) as [M1 [M2 M3]].
      pose proof (Nat.div_mod p g ltac:(lia)) as D. split.
      - intros E. destruct (divmod (k / g) (rank f g k) g RB) as [D1 D2]. rewrite E in D1, D2.
        apply (rank_injective f g ltac:(lia)); [now rewrite M1|now rewrite M2].
      - intros ->. rewrite M1, M2. lia. }
    set (width := fun q => length (selected N (fun q k => in_row g q k && before f q k) q)).
    exists moved. split; [|split; [|split]].
    - intros e F. assert (IP : index N tokens e (Binary Add (Binary Multiply (row_index g) (integer g)) (rank_in_group g s))
        (fun q => q / g * g + width q)%nat).
      { apply index_add; [|exact (gives_rank e s f F)].
        apply index_multiply; [apply index_row_index; lia|apply index_constant]. }
      eapply gives_ext; [|apply gives_if; [apply says_inside|apply gives_aggregate;
        [apply selects_equal; [exact IP|apply gives_indices]|exact F]|apply (gives_integer N tokens e 0)]].
      intros p P0. cbv beta. destruct (Nat.ltb_spec p (r * c)) as [P|P]; [|reflexivity].
      destruct (MV p P) as [M1 [M2 M3]].
      rewrite (selected_ext N _ (fun p k => Nat.eqb k (moved p))).
      + rewrite (selected_one N moved p) by lia. unfold mean; simpl. lra.
      + intros k K. destruct (Nat.lt_ge_cases k (r * c)) as [L|L].
        * unfold width. rewrite rank_inside by exact L.
          destruct (Nat.eqb_spec (k / g * g + rank f g k) p) as [E|E], (Nat.eqb_spec k (moved p)) as [E'|E']; auto;
            exfalso; [apply E'|apply E]; now apply PLACE.
        * rewrite (proj2 (Nat.eqb_neq k (moved p))) by lia. apply Nat.eqb_neq.
          assert (r * c / g <= k / g)%nat by (apply Nat.div_le_mono; lia). nia.
    - intros p P. destruct (MV p P) as [M1 [M2 M3]]. auto.
    - intros p q P Q E. destruct (MV p P) as [M1 [M2 _]], (MV q Q) as [M3 [M4 _]].
      rewrite E in M1, M2. rewrite (Nat.div_mod p g), (Nat.div_mod q g) by lia. congruence.
    - intros p q P Q G L. destruct (MV p P) as [M1 [M2 _]], (MV q Q) as [M3 [M4 _]].
      assert (LT : (p mod g < q mod g)%nat)
        by (pose proof (Nat.div_mod p g ltac:(lia)); pose proof (Nat.div_mod q g ltac:(lia)); rewrite G in *; lia).
      destruct (Rle_or_lt (f (moved q)) (f (moved p))) as [|H]; [assumption|]. exfalso.
      assert (B : before f (moved p) (moved q) = true) by (apply before_spec; left; lra).
      pose proof (rank_order f g ltac:(lia) (moved p) (moved q) ltac:(congruence) B). lia.
  Qed.

  Theorem groupsort_correct context s M :
    holds N tokens context (row_major s r c) M ->
    let flat := fun q => M (q / c)%nat (q mod c)%nat in
    exists moved : nat -> nat,
      holds N tokens context (row_major (groupsort r c g s) r c) (fun i j => flat (moved (i * c + j)%nat)) /\
      (forall p, (p < r * c)%nat -> (moved p < r * c)%nat /\ (moved p / g = p / g)%nat) /\
      (forall p q, (p < r * c)%nat -> (q < r * c)%nat -> moved p = moved q -> p = q) /\
      (forall p q, (p < r * c)%nat -> (q < r * c)%nat -> (p / g = q / g)%nat -> (p < q)%nat ->
         flat (moved q) <= flat (moved p)).
  Proof.
    intros H flat. apply holds_compact in H. destruct H as [[e0 E0] [f [F H]]].
    assert (FLAT : forall q, (q < r * c)%nat -> f q = flat q).
    { intros q Q. destruct (H (q / c)%nat (q mod c)%nat) as [_ V].
      - apply Nat.div_lt_upper_bound; lia.
      - apply Nat.mod_upper_bound; lia.
      - unfold flat. rewrite <- V. f_equal. rewrite Nat.mul_comm. apply Nat.div_mod. lia. }
    destruct (gives_groupsort s f) as [moved [G0 [M1 [M2 M3]]]].
    exists moved. split; [|split; [exact M1|split; [exact M2|]]].
    2:{ intros p q P Q G L. rewrite <- !FLAT by (now apply M1). now apply M3. }
    apply holds_compact. split; [now exists e0|].
    exists (fun p => if Nat.ltb p (r * c) then f (moved p) else 0). split.
    - intros e E. apply G0. now apply F.
    - intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
      rewrite (proj2 (Nat.ltb_lt _ _) L). apply FLAT. now apply M1.
  Qed.
End GroupSort.
