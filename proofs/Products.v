(** * The paper's matrix product (Lemma matmul, Algorithm 3): r + c heads, then r·c heads, for all
    shapes

    The theorem, [paper_matmul_correct]: the program contains Σ over t of Aᵢₜ Bₜⱼ ([dot] of
    [Matrices.v]). [gives_products] states the result for all positions to which the heads move the
    entries. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax.
Open Scope R_scope.

(** ** Program *)

(** Head l repeats row l of A, and head m repeats column m of B; both have k entries. Head (l, m)
    moves the mean of the first k products to position l·width + m, and a feed-forward multiplies by
    k. *)
Definition products_at (width h : nat) (a b : matrix) : sop :=
  let k := columns a in
  let l := Family h 0 (rows a) in
  let m := Family h 1 (columns b) in
  let t := At (Binary Modulo Indices (integer k)) in
  let target := sop_of (plus (times (At (Head l)) (Int width)) (At (Head m))) in
  Binary Multiply (integer k)
    (SumOver
       (Aggregate
          (SelectorAnd (Select Lt Indices (integer k)) (Select Eq target Indices))
          (Binary Multiply (entry a (At (Head l)) t) (entry b t (At (Head m))))
          (Integer 0))
       [l; m]).

(** The position of entry (l, m) is l·c + m, because the rows of the result have c entries. *)
Definition paper_matmul (h : nat) (a b : matrix) : matrix :=
  row_major (products_at (columns b) h a b) (rows a) (columns b).

(** ** Meaning *)

Lemma sum_zero n : sum n (fun _ => 0) = 0.
Proof. induction n; simpl; lra. Qed.

Lemma sum_one n m f : (m < n)%nat -> sum n (fun k => if Nat.eqb k m then f k else 0) = f m.
Proof.
  induction n; intros H; [lia|]. simpl. destruct (Nat.eqb_spec n m) as [->|E].
  - rewrite (sum_ext m _ (fun _ => 0)), sum_zero; [lra|].
    intros k K. destruct (Nat.eqb_spec k m); [lia|reflexivity].
  - rewrite IHn by lia. lra.
Qed.

(** The sum over all (l, m) is the term at position q. *)
Lemma sum_entry r c q (F : nat -> nat -> R) : (0 < c)%nat -> (q < r * c)%nat ->
  sum r (fun l => sum c (fun m => if Nat.eqb (l * c + m) q then F l m else 0))
  = F (q / c)%nat (q mod c)%nat.
Proof.
  intros C Q. rewrite <- (sum_one r (q / c) (fun l => F l (q mod c)%nat))
    by (apply Nat.div_lt_upper_bound; lia).
  apply sum_ext. intros l L. destruct (Nat.eqb_spec l (q / c)) as [->|D].
  - rewrite <- (sum_one c (q mod c) (fun m => F (q / c)%nat m)) by (apply Nat.mod_upper_bound; lia).
    apply sum_ext. intros m M.
    replace (Nat.eqb (q / c * c + m) q) with (Nat.eqb m (q mod c)); [reflexivity|].
    pose proof (Nat.div_mod q c ltac:(lia)).
    destruct (Nat.eqb_spec m (q mod c)), (Nat.eqb_spec (q / c * c + m) q); auto; nia.
  - rewrite (sum_ext c _ (fun _ => 0)); [apply sum_zero|]. intros m M.
    destruct (Nat.eqb_spec (l * c + m) q) as [E|]; [|reflexivity].
    exfalso. apply D. rewrite <- E. symmetry. now apply divmod.
Qed.

Section Products.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation selects := (selects N tokens).
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).

  Lemma gives_sum2 e body f g (h : nat -> nat -> nat -> R) :
    (forall s t, (s < size f)%nat -> (t < size g)%nat ->
       gives (bind (bind e f s) g t) body (h s t)) ->
    gives e (SumOver body [f; g]) (fun q => sum (size f) (fun s => sum (size g) (fun t => h s t q))).
  Proof.
    intros H. change (gives e (SumOver (SumOver body [g]) [f])
      (fun q => sum (size f) (fun s => sum (size g) (fun t => h s t q)))).
    apply (gives_sum N tokens e (SumOver body [g]) f (fun s q => sum (size g) (fun t => h s t q))).
    intros s S. apply gives_sum. intros t T. now apply H.
  Qed.

  Lemma selects_less e keys queries f g :
    index e keys f -> index e queries g ->
    selects e (Select Lt keys queries) (fun q k => Nat.ltb (f k) (g q)).
  Proof.
    intros [v [E V]] [w [F W]]. unfold Reasoning.selects. rewrite select_select, E, F.
    eexists; split; [reflexivity|]. intros q k Q K. cbv beta.
    rewrite V, W by assumption. apply compare_less.
  Qed.

  (** The first k keys, for one query. *)
  Lemma selected_first k p q : (k <= N)%nat ->
    selected N (fun q i => Nat.ltb i k && Nat.eqb p q) q = if Nat.eqb p q then seq 0 k else [].
  Proof.
    intros K. unfold selected. destruct (Nat.eqb p q).
    - replace N with (k + (N - k))%nat by lia. rewrite seq_app, filter_app.
      rewrite (filter_none _ (seq (0 + k) _)).
      + rewrite app_nil_r. assert (E : forall n, (n <= k)%nat ->
          filter (fun i => Nat.ltb i k && true) (seq 0 n) = seq 0 n).
        { induction n; [reflexivity|]. intros L. replace (S n) with (n + 1)%nat by lia.
          rewrite seq_app, filter_app, IHn by lia. simpl.
          now rewrite (proj2 (Nat.ltb_lt n k)) by lia. }
        now apply E.
      + intros i I. apply in_seq in I. rewrite andb_true_r. apply Nat.ltb_ge. lia.
    - apply filter_none. intros i _. apply andb_false_r.
  Qed.

  Lemma mean_first k (f : nat -> R) : (0 < k)%nat ->
    INR k * mean (map f (seq 0 k)) = sum k f.
  Proof.
    intros K. unfold mean. rewrite map_length, seq_length.
    replace (map f (seq 0 k)) with (map f (map (fun t => 0 + t)%nat (seq 0 k)))
      by (now rewrite map_id).
    rewrite total_map, (sum_ext k _ f) by reflexivity. field. apply not_0_INR; lia.
  Qed.

  Lemma sum_scaled_by k n F : INR k * sum n F = sum n (fun t => INR k * F t).
  Proof. induction n; simpl; [lra|]. rewrite <- IHn. lra. Qed.

  (** For all positions: each position contains the sum of the entries that are moved to it. *)
  Lemma gives_products width h a b A B :
    (0 < columns a)%nat -> columns a = rows b -> (columns a <= N)%nat -> keeps context h ->
    holds a A -> holds b B ->
    forall e, context e -> gives e (products_at width h a b)
      (fun q => sum (rows a) (fun s => sum (columns b) (fun t =>
         if Nat.eqb (s * width + t) q then dot (columns a) A B s t else 0))).
  Proof.
    intros K0 K KN KEEP [E0 [f [o [F [O FA]]]]] [_ [g [o' [G [O' GB]]]]] e E.
    set (k := columns a) in *. set (r := rows a) in *. set (c := columns b) in *.
    set (l := Family h 0 r). set (m := Family h 1 c).
    set (w := fun s t q => f (address a o s (q mod k)) * g (address b o' (q mod k) t)).
    set (part := fun s t q => if Nat.eqb (s * width + t) q then mean (map (w s t) (seq 0 k)) else 0).
    assert (SUM : gives e (products_at width h a b)
      (fun q => INR k * sum r (fun s => sum c (fun t => part s t q)))).
    { apply gives_multiply; [apply (index_constant N tokens e k)|].
      apply (gives_sum2 e _ l m part). simpl size. intros s t S T.
      set (e' := bind (bind e l s) m t).
      assert (E' : context e') by (apply KEEP; [reflexivity|now apply KEEP]).
      assert (IL : index e' (sop_of (At (Head l))) (fun _ => s)).
      { eapply index_same; [|apply index_head]. intros q Q. unfold e', bind; simpl.
        now rewrite !Nat.eqb_refl. }
      assert (IM : index e' (sop_of (At (Head m))) (fun _ => t)) by apply index_bound.
      assert (IT : index e' (sop_of (At (Binary Modulo Indices (integer k)))) (fun q => q mod k)%nat).
      { apply index_modulo; [apply gives_indices|apply index_constant|auto]. }
      assert (IP : index e' (sop_of (plus (times (At (Head l)) (Int width)) (At (Head m))))
                     (fun _ => s * width + t)%nat).
      { apply (index_plus N tokens e' _ _ (fun _ => s * width)%nat (fun _ => t)); [|exact IM].
        apply (index_times N tokens e' _ _ (fun _ => s) (fun _ => width)); [exact IL|apply index_int]. }
      eapply gives_ext; [|apply (gives_aggregate N tokens e' _ _
        (fun q i => Nat.ltb i k && Nat.eqb (s * width + t) q) (w s t))].
      + intros q Q. cbv beta. rewrite selected_first by exact KN. unfold part.
        destruct (Nat.eqb (s * width + t) q); [reflexivity|].
        unfold mean; simpl. unfold Rdiv. apply Rmult_0_l.
      + apply selects_and.
        * apply (selects_less e' Indices (integer k) (fun q => q) (fun _ => k));
            [apply gives_indices|apply index_constant].
        * apply (selects_equal N tokens e' _ Indices (fun _ => s * width + t)%nat (fun q => q));
            [exact IP|apply gives_indices].
      + apply gives_multiply.
        * apply (gives_entry N tokens e' a _ _ o (fun _ => s) (fun q => q mod k)%nat); auto.
          intros q Q. apply FA; [exact S|apply Nat.mod_upper_bound; lia].
        * apply (gives_entry N tokens e' b _ _ o' (fun q => q mod k)%nat (fun _ => t)); auto.
          intros q Q. apply GB; [pose proof (Nat.mod_upper_bound q k); lia|exact T]. }
    eapply gives_ext; [|exact SUM]. intros q Q. cbv beta.
    rewrite sum_scaled_by. apply sum_ext. intros s S. rewrite sum_scaled_by. apply sum_ext. intros t T.
    unfold part. destruct (Nat.eqb (s * width + t) q); [|lra]. rewrite mean_first by exact K0.
    apply sum_ext. intros u U. unfold w. rewrite Nat.mod_small by exact U.
    now rewrite (proj2 (FA s u S U)), (proj2 (GB u t ltac:(lia) T)).
  Qed.

  (** Lemma matmul with the heads of the paper, for all shapes. *)
  Theorem paper_matmul_correct h a b A B :
    (0 < rows a)%nat -> (0 < columns a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat -> (columns a <= N)%nat -> keeps context h ->
    holds a A -> holds b B ->
    holds (paper_matmul h a b) (dot (columns a) A B).
  Proof.
    intros R0 K0 C0 K RC KN KEEP HA HB.
    apply holds_compact. split; [exact (proj1 HA)|].
    eexists; split; [now apply (gives_products (columns b) h a b A B)|].
    intros i j I J. assert (L : (i * columns b + j < rows a * columns b)%nat) by nia. split; [lia|].
    cbv beta. rewrite (sum_entry _ _ _ (dot (columns a) A B) C0 L).
    now destruct (divmod i j (columns b) J) as [-> ->].
  Qed.
End Products.
