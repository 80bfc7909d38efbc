(** * Matrices as views of a sequence (Proposition 1D), and their products by fetching heads *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning.
Open Scope R_scope.

(** ** Positions: numbers, or s-ops; sums and products without a node where nothing changes *)
Inductive place := Int (n : nat) | At (p : sop).

Definition sop_of (x : place) : sop :=
  match x with Int n => Constant (Integer (Z.of_nat n)) | At p => p end.

Definition plus (a b : place) : place :=
  match a, b with
  | Int 0, _ => b
  | _, Int 0 => a
  | Int m, Int n => Int (m + n)
  | _, _ => At (Binary Add (sop_of a) (sop_of b))
  end.

Definition times (a b : place) : place :=
  match a, b with
  | Int 1, _ => b
  | _, Int 1 => a
  | Int 0, _ => Int 0
  | _, Int 0 => Int 0
  | Int m, Int n => Int (m * n)
  | _, _ => At (Binary Multiply (sop_of a) (sop_of b))
  end.

(** ** Views *)
Record matrix := View {
  source : sop; rows : nat; columns : nat;
  offset : nat; row_stride : nat; column_stride : nat }.

Definition row_major (s : sop) (r c : nat) : matrix := View s r c 0 c 1.

Definition transposed (m : matrix) : matrix :=
  View (source m) (columns m) (rows m) (offset m) (column_stride m) (row_stride m).

Definition address (m : matrix) (i j : nat) : nat :=
  (offset m + i * row_stride m + j * column_stride m)%nat.

Definition position (m : matrix) (i j : place) : place :=
  plus (plus (Int (offset m)) (times i (Int (row_stride m)))) (times j (Int (column_stride m))).

(** Entry (i, j) at each position that asks for it: one head. *)
Definition entry (m : matrix) (i j : place) : sop :=
  fetch (sop_of (position m i j)) (source m).

(** Row and column of each position of an r×c matrix, and 0 behind its end. *)
Definition integer (n : nat) : sop := Constant (Integer (Z.of_nat n)).
Definition inside (r c : nat) : sop := Binary (Compare Lt) Indices (integer (r * c)).
Definition row_of (r c : nat) : sop :=
  IfElse (inside r c) (Binary FloorDivide Indices (integer c)) (integer 0).
Definition column_of (r c : nat) : sop :=
  IfElse (inside r c) (Binary Modulo Indices (integer c)) (integer 0).

(** The product by 2k heads: recipe fetch. [h] is the height of its sum. *)
Definition product_term (t : family) (a b : matrix) : sop :=
  Binary Multiply
    (entry a (At (row_of (rows a) (columns b))) (At (Head t)))
    (entry b (At (Head t)) (At (column_of (rows a) (columns b)))).

Definition matmul (h : nat) (a b : matrix) : matrix :=
  let t := Family h 0 (columns a) in
  row_major (SumOver (product_term t a b) [t]) (rows a) (columns b).

(** ** What they mean *)
Section Matrices.
  Variable N : nat.
  Variable tokens : nat -> value.

  Notation gives := (gives N tokens).
  Notation index := (index N tokens).

  (** The view holds the matrix M: its s-op has a value everywhere, and M's entries at its places. *)
  Definition holds (m : matrix) (M : nat -> nat -> R) :=
    exists f, (forall e, gives e (source m) f) /\
      forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        (address m i j < N)%nat /\ f (address m i j) = M i j.

  Lemma index_int e n : index e (sop_of (Int n)) (fun _ => n).
  Proof. apply index_constant. Qed.

  Lemma index_same e p f g :
    (forall q, (q < N)%nat -> f q = g q) -> index e p f -> index e p g.
  Proof. intros H. apply gives_ext. intros q Q. now rewrite H. Qed.

  Lemma index_int_eq e n f : index e (sop_of (Int n)) f -> forall q, (q < N)%nat -> f q = n.
  Proof.
    intros [g [E G]] q Q. specialize (G q Q). cbn in E. injection E as <-.
    injection G as G. rewrite <- INR_IZR_INZ in G. now apply INR_eq in G.
  Qed.

  Lemma index_plus e a b f g :
    index e (sop_of a) f -> index e (sop_of b) g ->
    index e (sop_of (plus a b)) (fun q => f q + g q)%nat.
  Proof.
    intros A B. unfold plus.
    destruct a as [[|m]|p].
    - apply (index_same e _ g); [|exact B].
      intros q Q. now rewrite (index_int_eq _ _ _ A q Q).
    - destruct b as [[|n]|p'].
      + apply (index_same e _ f); [|exact A].
        intros q Q. rewrite (index_int_eq _ _ _ B q Q). lia.
      + apply (index_same e _ (fun _ => S m + S n)%nat); [|apply index_int].
        intros q Q. now rewrite (index_int_eq _ _ _ A q Q), (index_int_eq _ _ _ B q Q).
      + now apply index_add.
    - destruct b as [[|n]|p'].
      + apply (index_same e _ f); [|exact A].
        intros q Q. rewrite (index_int_eq _ _ _ B q Q). lia.
      + now apply index_add.
      + now apply index_add.
  Qed.

  Lemma index_times e a b f g :
    index e (sop_of a) f -> index e (sop_of b) g ->
    index e (sop_of (times a b)) (fun q => f q * g q)%nat.
  Proof.
    intros A B. unfold times.
    destruct a as [[|[|m]]|p]; destruct b as [[|[|n]]|p'];
      first
        [ now apply index_multiply
        | apply (index_same e _ g); [intros q Q; rewrite (index_int_eq _ _ _ A q Q); lia|exact B]
        | apply (index_same e _ f); [intros q Q; rewrite (index_int_eq _ _ _ B q Q); lia|exact A]
        | eapply index_same; [|apply index_int]; intros q Q; simpl;
          rewrite ?(index_int_eq _ _ _ A q Q), ?(index_int_eq _ _ _ B q Q); lia ].
  Qed.

  Lemma index_position e m i j f g :
    index e (sop_of i) f -> index e (sop_of j) g ->
    index e (sop_of (position m i j)) (fun q => address m (f q) (g q)).
  Proof.
    intros I J. unfold position, address.
    apply index_plus; [apply index_plus; [apply index_int|]|];
      apply index_times; auto; apply index_int.
  Qed.

  Lemma gives_entry e m i j f g v :
    index e (sop_of i) f -> index e (sop_of j) g -> gives e (source m) v ->
    (forall q, (q < N)%nat -> (address m (f q) (g q) < N)%nat) ->
    gives e (entry m i j) (fun q => v (address m (f q) (g q))).
  Proof.
    intros I J V H. unfold entry.
    apply (gives_fetch N tokens e _ _ (fun q => address m (f q) (g q))); auto.
    now apply index_position.
  Qed.

  Lemma gives_entry_or e m i j f g v :
    index e (sop_of i) f -> index e (sop_of j) g -> gives e (source m) v ->
    gives e (entry m i j)
      (fun q => if Nat.ltb (address m (f q) (g q)) N then v (address m (f q) (g q)) else 0).
  Proof.
    intros I J V. unfold entry.
    apply (gives_fetch_or N tokens e _ _ (fun q => address m (f q) (g q))); auto.
    now apply index_position.
  Qed.

  Lemma says_inside e r c :
    says N tokens e (inside r c) (fun q => Nat.ltb q (r * c)).
  Proof. apply says_less; [apply gives_indices|apply index_constant]. Qed.

  Lemma index_row e r c : (0 < c)%nat ->
    index e (row_of r c) (fun q => if Nat.ltb q (r * c) then q / c else 0)%nat.
  Proof.
    intros C. apply index_if; [apply says_inside| |apply (index_constant N tokens e 0)].
    apply index_floor_divide; [apply gives_indices|apply index_constant|auto].
  Qed.

  Lemma index_column e r c : (0 < c)%nat ->
    index e (column_of r c) (fun q => if Nat.ltb q (r * c) then q mod c else 0)%nat.
  Proof.
    intros C. apply index_if; [apply says_inside| |apply (index_constant N tokens e 0)].
    apply index_modulo; [apply gives_indices|apply index_constant|auto].
  Qed.

  Lemma row_below r c q : (0 < r)%nat -> (0 < c)%nat ->
    ((if Nat.ltb q (r * c) then q / c else 0) < r)%nat.
  Proof.
    intros R0 C0. destruct (Nat.ltb_spec q (r * c)); [|lia].
    apply Nat.div_lt_upper_bound; lia.
  Qed.

  Lemma column_below r c q : (0 < c)%nat ->
    ((if Nat.ltb q (r * c) then q mod c else 0) < c)%nat.
  Proof.
    intros C0. destruct (Nat.ltb_spec q (r * c)); [|lia]. apply Nat.mod_upper_bound; lia.
  Qed.

  Lemma divmod i j c : (j < c)%nat -> ((i * c + j) / c = i /\ (i * c + j) mod c = j)%nat.
  Proof.
    intros H. split.
    - rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia. lia.
    - rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small; lia.
  Qed.

  Lemma sum_ext n f g : (forall k, (k < n)%nat -> f k = g k) -> sum n f = sum n g.
  Proof. induction n; simpl; intros H; [reflexivity|]. rewrite IHn, H; auto with arith. Qed.

  Definition dot k (A B : nat -> nat -> R) i j := sum k (fun t => A i t * B t j).

  (** Lemma matmul, for all shapes. *)
  Theorem matmul_correct h a b A B :
    (0 < rows a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat ->
    holds a A -> holds b B ->
    holds (matmul h a b) (dot (columns a) A B).
  Proof.
    intros R0 C0 K RC [f [F FA]] [g [G GB]].
    set (i := fun q => if Nat.ltb q (rows a * columns b) then (q / columns b)%nat else 0%nat).
    set (j := fun q => if Nat.ltb q (rows a * columns b) then (q mod columns b)%nat else 0%nat).
    exists (fun q => sum (columns a) (fun t => f (address a (i q) t) * g (address b t (j q)))).
    split.
    - intros e. simpl.
      apply (gives_sum N tokens e _ (Family h 0 (columns a))
               (fun t q => f (address a (i q) t) * g (address b t (j q)))).
      simpl. intros t T0.
      assert (HT : forall e', index (bind e' (Family h 0 (columns a)) t)
                     (sop_of (At (Head (Family h 0 (columns a))))) (fun _ => t)).
      { intros e'. eapply index_same; [|apply index_head]. intros q Q. unfold bind; simpl.
        now rewrite !Nat.eqb_refl. }
      apply gives_multiply.
      + apply (gives_entry _ a _ _ i (fun _ => t)); auto.
        * now apply index_row.
        * intros q Q. apply FA; [now apply row_below|exact T0].
      + apply (gives_entry _ b _ _ (fun _ => t) j); auto.
        * now apply index_column.
        * intros q Q. apply GB; [lia|now apply column_below].
    - intros p q P Q. simpl in P, Q.
      replace (address (matmul h a b) p q) with (p * columns b + q)%nat
        by (unfold address; simpl; lia).
      assert (L : (p * columns b + q < rows a * columns b)%nat) by nia.
      split; [lia|]. unfold dot. apply sum_ext. intros t T0.
      unfold i, j. rewrite (proj2 (Nat.ltb_lt _ _) L).
      destruct (divmod p q (columns b) Q) as [-> ->].
      now rewrite (proj2 (FA p t P T0)), (proj2 (GB t q ltac:(lia) Q)).
  Qed.

  (** Lemma transposition, as a view. *)
  Theorem transposed_correct m M : holds m M -> holds (transposed m) (fun i j => M j i).
  Proof.
    intros [f [F H]]. exists f; split; [exact F|]. intros i j I J. simpl in I, J.
    replace (address (transposed m) i j) with (address m j i) by (unfold address; simpl; lia).
    now apply H.
  Qed.
End Matrices.
