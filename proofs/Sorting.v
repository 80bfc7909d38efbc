(** * MaxMin, and activations through MaxMin, for all shapes (Lemma MaxMin, Algorithm 4, Listing 5,
    corrected)

    The theorems are [maxmin_correct] (with one head, each position attends to its partner),
    [flipping_correct] (the corrected listing) and [through_maxmin_correct] (ReLU, leaky ReLU and |x|
    as the maximum of a pair). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Heads Tiled Activations.
Open Scope R_scope.

(** ** Programs *)

Definition even_position : sop :=
  Binary (Compare Eq) (Binary Modulo Indices (integer 2)) (integer 0).

(** Each position keeps the maximum or the minimum of its value and the value of its partner. *)
Definition by_partner (n : nat) (s : sop) : sop :=
  let other :=
    IfElse even_position (Binary Minimum (Binary Add Indices (integer 1)) (integer (n - 1)))
      (Binary Subtract Indices (integer 1)) in
  let partner := fetch other s in
  IfElse even_position (Binary Maximum s partner) (Binary Minimum s partner).
Definition maxmin (r c : nat) (s : sop) : sop :=
  IfElse (inside r c) (by_partner (r * c) s) (integer 0).

(** The corrected listing finds and flips pairs. Its condition holds only at even positions (E2). *)
Definition flips (s : sop) : sop :=
  let itself := fetch Indices s in
  let following :=
    Aggregate
      (SelectorAnd (Select Eq Indices (Binary Add Indices (integer 1)))
         (Select Eq (integer 0) (Binary Modulo Indices (integer 2)))) s (Integer 0) in
  IfElse (Binary And even_position (Binary (Compare Lt) (Binary Subtract itself following) (integer 0)))
    (integer 1) (integer 0).
Definition flipping (r c : nat) (s : sop) : sop :=
  let all :=
    Binary Add (flips s)
      (Aggregate (Select Eq (Binary Add Indices (integer 1)) Indices) (flips s) (Integer 0)) in
  let other := Binary Add Indices (IfElse even_position (integer 1) (Constant (Integer (-1)))) in
  IfElse (inside r c)
    (IfElse (Binary (Compare Eq) all (integer 1)) (fetch other s) (fetch Indices s)) (integer 0).

(** Each entry is followed by another number. The result is every other entry of MaxMin of these
    pairs. *)
Definition through_maxmin (r c : nat) (s other : sop) : matrix :=
  let n := (2 * (r * c))%nat in
  let half := Binary FloorDivide Indices (integer 2) in
  View
    (maxmin 1 n
       (IfElse (inside 1 n) (IfElse even_position (fetch half s) (fetch half other)) (integer 0)))
    r c (Int 0) (2 * c) 2.

(** ** Meaning *)

Definition sorted_pairs (x : nat -> R) (q : nat) : R :=
  if Nat.eqb (q mod 2) 0 then Rmax (x q) (x (S q)) else Rmin (x (q - 1)%nat) (x q).

Lemma mean_none (f : nat -> R) : mean (map f []) = 0.
Proof. unfold mean; simpl. unfold Rdiv. apply Rmult_0_l. Qed.
Lemma parity q : (q mod 2 = 0 \/ q mod 2 = 1)%nat.
Proof. pose proof (Nat.mod_upper_bound q 2 ltac:(lia)). lia. Qed.
Lemma even_below q n : (n mod 2 = 0 -> q mod 2 = 0 -> q < n -> S q < n)%nat.
Proof.
  intros A B L. destruct (Nat.eq_dec (S q) n) as [E|]; [|lia]. exfalso. rewrite <- E in A.
  replace (S q) with (1 + q)%nat in A by lia. rewrite Nat.add_mod, B in A by lia. discriminate.
Qed.
Lemma odd_positive q : (q mod 2 = 1 -> 0 < q)%nat.
Proof. destruct q; [discriminate|lia]. Qed.

Section Sorting.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Variables (r c : nat).
  Hypothesis columns_exist : (0 < c)%nat.
  Hypothesis room : (r * c <= N)%nat.
  Hypothesis pairs : ((r * c) mod 2 = 0)%nat.

  Lemma says_even e : says N tokens e even_position (fun q => Nat.eqb (q mod 2) 0).
  Proof.
    apply says_equal; [apply index_mod; [exact Nat.lt_0_2|apply gives_indices]|apply (index_constant N tokens e 0)].
  Qed.

  Lemma gives_maxmin e s f : gives e s f ->
    gives e (maxmin r c s) (fun q => if Nat.ltb q (r * c) then sorted_pairs f q else 0).
  Proof.
    intros F. set (n := (r * c)%nat) in *.
    set (par := fun q => if Nat.eqb (q mod 2) 0 then Nat.min (q + 1) (n - 1) else (q - 1)%nat).
    assert (IO : index e (IfElse even_position
      (Binary Minimum (Binary Add Indices (integer 1)) (integer (n - 1)))
      (Binary Subtract Indices (integer 1))) par).
    { eapply gives_ext; [|apply gives_if; [apply says_even|apply index_minimum;
        [apply index_add; [apply gives_indices|apply (index_constant N tokens e 1)]|
         apply (index_constant N tokens e (n - 1))]|
        apply gives_subtract; [apply gives_indices|apply (index_constant N tokens e 1)]]].
      intros q Q. cbv beta. unfold par. destruct (Nat.eqb_spec (q mod 2) 0) as [E|E]; [reflexivity|].
      pose proof (parity q). pose proof (odd_positive q ltac:(lia)). rewrite minus_INR by lia. simpl; lra. }
    assert (GP : gives e (fetch (IfElse even_position
      (Binary Minimum (Binary Add Indices (integer 1)) (integer (n - 1)))
      (Binary Subtract Indices (integer 1))) s) (fun q => f (par q))).
    { apply gives_fetch; auto. intros q Q. unfold par. destruct (Nat.eqb (q mod 2) 0); lia. }
    eapply gives_ext; [|apply gives_if; [apply says_inside|apply gives_if; [apply says_even|
      apply gives_maximum; [exact F|exact GP]|apply gives_minimum; [exact F|exact GP]]|
      apply (gives_integer N tokens e 0)]].
    intros q Q. cbv beta. fold n. destruct (Nat.ltb_spec q n) as [L|L]; [|reflexivity].
    unfold sorted_pairs, par. destruct (Nat.eqb_spec (q mod 2) 0) as [E|E].
    - pose proof (even_below q n pairs E L). rewrite Nat.min_l by lia. do 2 f_equal. lia.
    - apply Rmin_comm.
  Qed.

  (** The entries of a matrix whose s-op is sorted in pairs of positions. *)
  Lemma sorted_matrix (context : environment -> Prop) s t M :
    (forall e f, context e -> gives e s f ->
       gives e t (fun q => if Nat.ltb q (r * c) then sorted_pairs f q else 0)) ->
    holds N tokens context (row_major s r c) M ->
    holds N tokens context (row_major t r c)
      (fun i j => sorted_pairs (fun q => M (q / c)%nat (q mod c)%nat) (i * c + j)).
  Proof.
    intros T H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    apply holds_compact. split; [exact E0|].
    exists (fun q => if Nat.ltb q (r * c) then sorted_pairs f q else 0). split; [auto|].
    intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
    rewrite (proj2 (Nat.ltb_lt _ _) L).
    assert (V : forall q, (q < r * c)%nat -> f q = M (q / c)%nat (q mod c)%nat).
    { intros q Q. destruct (H (q / c)%nat (q mod c)%nat) as [_ V].
      - apply Nat.div_lt_upper_bound; lia.
      - apply Nat.mod_upper_bound; lia.
      - rewrite <- V. f_equal. rewrite Nat.mul_comm. apply Nat.div_mod. lia. }
    unfold sorted_pairs. destruct (Nat.eqb_spec ((i * c + j) mod 2) 0) as [E|E].
    - pose proof (even_below _ _ pairs E L). now rewrite !V by lia.
    - now rewrite !V by lia.
  Qed.

  (** Lemma MaxMin: every pair is sorted in descending order. *)
  Theorem maxmin_correct context s M :
    holds N tokens context (row_major s r c) M ->
    holds N tokens context (row_major (maxmin r c s) r c)
      (fun i j => sorted_pairs (fun q => M (q / c)%nat (q mod c)%nat) (i * c + j)).
  Proof. apply sorted_matrix. intros e f _. apply gives_maxmin. Qed.

  Definition flip (f : nat -> R) (q : nat) : R :=
    if Nat.eqb (q mod 2) 0 && compare Lt (f q - (if Nat.ltb (S q) N then f (S q) else 0)) 0 then 1 else 0.

  Lemma gives_itself e s f : gives e s f -> gives e (fetch Indices s) f.
  Proof.
    intros F. apply (gives_fetch N tokens e Indices s (fun q => q)); auto. apply gives_indices.
  Qed.

  Lemma gives_flips e s f : gives e s f -> gives e (flips s) (flip f).
  Proof.
    intros F. pose proof (gives_indices N tokens e) as II.
    assert (IN : index e (Binary Add Indices (integer 1)) S).
    { eapply index_same; [|apply index_add; [exact II|apply (index_constant N tokens e 1)]].
      intros q Q. cbv beta. lia. }
    assert (FOLLOW : gives e (Aggregate
      (SelectorAnd (Select Eq Indices (Binary Add Indices (integer 1)))
         (Select Eq (integer 0) (Binary Modulo Indices (integer 2)))) s (Integer 0))
      (fun q => if Nat.eqb (q mod 2) 0 then if Nat.ltb (S q) N then f (S q) else 0 else 0)).
    { eapply gives_ext; [|apply gives_aggregate; [apply selects_and; [apply selects_equal; [exact II|exact IN]|
        apply selects_equal; [apply (index_constant N tokens e 0)|apply index_mod; [lia|exact II]]]|exact F]].
      intros q Q. cbv beta. destruct (Nat.eqb_spec (q mod 2) 0) as [E|E].
      - destruct (Nat.ltb_spec (S q) N) as [L|L].
        + rewrite (selected_ext N _ (fun q k => Nat.eqb k (S q))), (selected_one N S q L).
          * unfold mean; simpl. lra.
          * intros k K. now rewrite (proj2 (Nat.eqb_eq 0 (q mod 2))), andb_true_r by auto.
        + replace (selected N _ q) with (@nil nat); [now rewrite mean_none|].
          symmetry. apply filter_none. intros k K. apply in_seq in K.
          now rewrite (proj2 (Nat.eqb_neq k (S q))) by lia.
      - replace (selected N _ q) with (@nil nat); [now rewrite mean_none|].
        symmetry. apply filter_none. intros k K.
        now rewrite (proj2 (Nat.eqb_neq 0 (q mod 2))), andb_false_r by auto. }
    eapply gives_ext; [|apply gives_if; [apply says_and; [apply says_even|apply says_compare;
      [apply gives_subtract; [apply gives_itself; exact F|exact FOLLOW]|apply (gives_integer N tokens e 0)]]|
      apply (gives_integer N tokens e 1)|apply (gives_integer N tokens e 0)]].
    intros q Q. cbv beta. unfold flip. destruct (Nat.eqb (q mod 2) 0); reflexivity.
  Qed.

  Lemma gives_flipping e s f : gives e s f ->
    gives e (flipping r c s) (fun q => if Nat.ltb q (r * c) then sorted_pairs f q else 0).
  Proof.
    intros F. pose proof (gives_flips e s f F) as GF. pose proof (gives_indices N tokens e) as II.
    assert (IN : index e (Binary Add Indices (integer 1)) S).
    { eapply index_same; [|apply index_add; [exact II|apply (index_constant N tokens e 1)]].
      intros q Q. cbv beta. lia. }
    assert (BACK : gives e (Aggregate (Select Eq (Binary Add Indices (integer 1)) Indices) (flips s) (Integer 0))
      (fun q => if Nat.eqb q 0 then 0 else flip f (q - 1)%nat)).
    { eapply gives_ext; [|apply gives_aggregate; [apply selects_equal; [exact IN|exact II]|exact GF]].
      intros q Q. cbv beta. destruct (Nat.eqb_spec q 0) as [->|D].
      - replace (selected N _ 0) with (@nil nat); [now rewrite mean_none|].
        symmetry. now apply filter_none.
      - rewrite (selected_ext N _ (fun q k => Nat.eqb k (q - 1))).
        + rewrite (selected_one N (fun q => q - 1)%nat q) by lia. unfold mean; simpl. lra.
        + intros k K. destruct (Nat.eqb_spec k (q - 1)), (Nat.eqb_spec (S k) q); auto; lia. }
    set (par := fun q => if Nat.eqb (q mod 2) 0 then S q else (q - 1)%nat).
    assert (IO : index e (Binary Add Indices (IfElse even_position (integer 1) (Constant (Integer (-1))))) par).
    { eapply gives_ext; [|apply gives_add; [exact II|apply gives_if; [apply says_even|
        apply (gives_integer N tokens e 1)|apply (gives_integer N tokens e (-1))]]].
      intros q Q. cbv beta. unfold par. destruct (Nat.eqb_spec (q mod 2) 0) as [E|E].
      - now rewrite S_INR.
      - pose proof (parity q). pose proof (odd_positive q ltac:(lia)). rewrite minus_INR by lia. simpl; lra. }
    eapply gives_ext; [|apply gives_if; [apply says_inside|apply gives_if; [apply says_compare;
      [apply gives_add; [exact GF|exact BACK]|apply (gives_integer N tokens e 1)]|
      apply (gives_fetch_or N tokens e _ s par f IO F)|apply gives_itself; exact F]|
      apply (gives_integer N tokens e 0)]].
    intros q Q. cbv beta. destruct (Nat.ltb_spec q (r * c)) as [L|L]; [|reflexivity].
    unfold sorted_pairs, flip, par. destruct (Nat.eqb_spec (q mod 2) 0) as [E|E].
    - pose proof (even_below q _ pairs E L) as L'. rewrite (proj2 (Nat.ltb_lt (S q) N)) by lia.
      assert (B : (if Nat.eqb q 0 then 0 else if Nat.eqb ((q - 1) mod 2) 0 &&
          compare Lt (f (q - 1)%nat - (if Nat.ltb (S (q - 1)) N then f (S (q - 1)) else 0)) 0 then 1 else 0) = 0).
      { destruct (Nat.eqb_spec q 0) as [|D]; [reflexivity|].
        destruct (Nat.eqb_spec ((q - 1) mod 2) 0) as [E'|]; [|reflexivity]. exfalso.
        replace q with (1 + (q - 1))%nat in E by lia. rewrite Nat.add_mod, E' in E by lia. discriminate. }
      rewrite B. simpl andb. unfold compare, Rmax.
      destruct (Rlt_dec (f q - f (S q)) 0), (Rle_dec (f q) (f (S q))); simpl;
        destruct (Req_EM_T _ 1); auto; lra.
    - pose proof (parity q) as PQ. pose proof (odd_positive q ltac:(lia)) as P0.
      rewrite (proj2 (Nat.eqb_neq q 0)) by lia. replace (S (q - 1)) with q by lia.
      rewrite (proj2 (Nat.ltb_lt q N) Q), (proj2 (Nat.ltb_lt (q - 1) N)) by lia.
      assert (E' : ((q - 1) mod 2 = 0)%nat).
      { destruct (parity (q - 1)) as [|O]; [assumption|]. exfalso.
        replace q with (1 + (q - 1))%nat in E by lia. rewrite Nat.add_mod, O in E by lia. now apply E. }
      rewrite E'. simpl andb. unfold compare, Rmin.
      destruct (Rlt_dec (f (q - 1)%nat - f q) 0), (Rle_dec (f (q - 1)%nat) (f q));
        destruct (Req_EM_T _ 1); auto; try lra.
  Qed.

  (** The corrected listing. *)
  Theorem flipping_correct context s M :
    holds N tokens context (row_major s r c) M ->
    holds N tokens context (row_major (flipping r c s) r c)
      (fun i j => sorted_pairs (fun q => M (q / c)%nat (q mod c)%nat) (i * c + j)).
  Proof. apply sorted_matrix. intros e f _. apply gives_flipping. Qed.
End Sorting.

(** ReLU (other = 0), leaky ReLU (other = slope·x) and |x| (other = −x), through MaxMin. *)
Theorem through_maxmin_correct N tokens context r c s other M K :
  (0 < r)%nat -> (0 < c)%nat -> (2 * (r * c) <= N)%nat ->
  holds N tokens context (row_major s r c) M -> holds N tokens context (row_major other r c) K ->
  holds N tokens context (through_maxmin r c s other) (fun i j => Rmax (M i j) (K i j)).
Proof.
  intros R0 C0 RC HM HK. apply holds_compact in HM, HK.
  destruct HM as [E0 [f [F HM]]], HK as [_ [g [G HK]]]. set (n := (2 * (r * c))%nat).
  set (pair := fun q => if Nat.ltb q (1 * n) then if Nat.eqb (q mod 2) 0 then f (q / 2)%nat else g (q / 2)%nat else 0).
  split; [exact E0|]. exists (fun q => if Nat.ltb q (1 * n) then sorted_pairs pair q else 0), 0%nat.
  split; [|split; [intros; apply index_int|]].
  - intros e E. apply gives_maxmin; try (unfold n; nia).
    + replace (1 * n)%nat with ((r * c) * 2)%nat by (unfold n; lia). apply Nat.mod_mul. lia.
    + assert (IH : index N tokens e (Binary FloorDivide Indices (integer 2)) (fun q => q / 2)%nat)
        by (apply index_div; [lia|apply gives_indices]).
      assert (B : forall q, (q < N)%nat -> (q / 2 < N)%nat)
        by (intros q Q; pose proof (Nat.div_le_upper_bound q 2 q ltac:(lia) ltac:(lia)); lia).
      apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply gives_if; [apply says_even|apply gives_fetch; auto|apply gives_fetch; auto].
  - intros i j I J. simpl in I, J. unfold address; simpl.
    set (q := (i * c + j)%nat). assert (L : (q < r * c)%nat) by (unfold q; nia).
    replace (i * (c + (c + 0)) + j * 2)%nat with (q * 2)%nat by (unfold q; lia).
    split; [lia|]. rewrite (proj2 (Nat.ltb_lt (q * 2) (n + 0))) by (unfold n; lia).
    unfold sorted_pairs. rewrite Nat.mod_mul by lia. simpl Nat.eqb. cbv iota. unfold pair.
    rewrite !(proj2 (Nat.ltb_lt _ (1 * n))) by (unfold n; lia).
    replace (S (q * 2)) with (q * 2 + 1)%nat by lia.
    destruct (divmod q 0 2 ltac:(lia)) as [D1 D2], (divmod q 1 2 ltac:(lia)) as [D3 D4].
    rewrite Nat.add_0_r in D1, D2. rewrite D1, D2, D3, D4. simpl Nat.eqb. cbv iota.
    unfold q. now rewrite (proj2 (HM i j I J)), (proj2 (HK i j I J)).
Qed.
