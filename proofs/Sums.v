(** * From means to sums (Proposition AHAT), copies, rows repeated, residual sums *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax.
Open Scope R_scope.

(** ** Programs *)

(** The sum of the selected values: their mean, times how many they are. *)
Definition summed (s : selector) (values : sop) : sop :=
  Binary Multiply (Width s) (Aggregate s values (Integer 0)).
Definition summed_by (count : nat) (s : selector) (values : sop) : sop :=
  Binary Multiply (integer count) (Aggregate s values (Integer 0)).

(** The transpose by the paper's head: position i·r + j of the result fetches entry (j, i). *)
Definition transpose (m : matrix) : matrix :=
  let r := columns m in let c := rows m in
  row_major
    (IfElse (inside (rows m) (columns m))
       (entry m (At (Binary Modulo Indices (integer c))) (At (Binary FloorDivide Indices (integer c))))
       (integer 0))
    r c.

(** The mean and the sum of each row, at every entry of the row (of a compact matrix). *)
Definition row_means (r c : nat) (s : sop) : sop :=
  IfElse (inside r c)
    (Aggregate (same_row c) (IfElse (inside r c) s (integer 0)) (Integer 0)) (integer 0).
Definition row_sums (r c : nat) (s : sop) : sop :=
  Binary Multiply (integer c) (row_means r c s).

(** The sum of all entries of a compact matrix, at every position. *)
Definition all_sum (r c : nat) (s : sop) : sop :=
  summed_by (r * c) (Select Lt Indices (integer (r * c))) s.

(** A 1×c matrix repeated in every row, an r×1 matrix in every column. *)
Definition broadcast_row (m : matrix) (r : nat) : matrix :=
  row_major (entry m (Int 0) (At (Binary Modulo Indices (integer (columns m))))) r (columns m).
Definition residual (s t : sop) : sop := Binary Add s t.

(** ** What they mean *)
Section Sums.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation selects := (selects N tokens).
  Notation holds := (holds N tokens).

  Lemma gives_width e s m :
    selects e s m -> gives e (Width s) (fun q => INR (length (selected N m q))).
  Proof.
    intros [x [E X]]. unfold Reasoning.gives.
    change (eval N tokens (Width s) e) with
      (match select N tokens s e with
       | Some m => Some (fun q => Num (INR (length (selected N m q)))) | None => None end).
    rewrite E. eexists; split; [reflexivity|]. intros q Q. cbv beta.
    now rewrite (selected_ext N x m q) by (intros; now apply X).
  Qed.

  Lemma width_times_mean l : INR (length l) * mean l = total l.
  Proof.
    destruct l as [|a l]; [simpl; lra|]. unfold mean. field.
    apply not_0_INR. discriminate.
  Qed.

  (** Proposition AHAT: attention averages, and a feed-forward recovers the sum; 0 of no keys. *)
  Theorem summed_correct e s values m f :
    selects e s m -> gives e values f ->
    gives e (summed s values) (fun q => total (map f (selected N m q))).
  Proof.
    intros S F. eapply gives_ext;
      [|exact (gives_multiply N tokens e _ _ _ _ (gives_width e s m S)
                 (gives_aggregate N tokens e s values m f S F))].
    intros q Q. cbv beta. rewrite <- (map_length f). apply width_times_mean.
  Qed.

  Theorem summed_by_correct e n s values m f :
    selects e s m -> gives e values f ->
    (forall q, (q < N)%nat -> length (selected N m q) = n) ->
    gives e (summed_by n s values) (fun q => total (map f (selected N m q))).
  Proof.
    intros S F H. eapply gives_ext;
      [|exact (gives_multiply N tokens e _ _ _ _ (index_constant N tokens e n)
                 (gives_aggregate N tokens e s values m f S F))].
    intros q Q. cbv beta. rewrite <- (H q Q), <- (map_length f). apply width_times_mean.
  Qed.

  (** Lemma transposition, the paper's head, for all shapes. *)
  Theorem transpose_correct m M :
    (0 < rows m)%nat -> (0 < columns m)%nat -> (rows m * columns m <= N)%nat ->
    holds m M -> holds (transpose m) (fun i j => M j i).
  Proof.
    intros R0 C0 RC [f [F H]].
    set (from := fun q => address m (q mod rows m) (q / rows m)).
    exists (fun q => if Nat.ltb q (rows m * columns m)
                     then if Nat.ltb (from q) N then f (from q) else 0 else 0).
    split.
    - intros e. simpl. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply (gives_entry_or N tokens e m _ _ (fun q => q mod rows m)%nat (fun q => q / rows m)%nat);
        auto; simpl.
      + apply index_modulo; [apply gives_indices|apply index_constant|auto].
      + apply index_floor_divide; [apply gives_indices|apply index_constant|auto].
    - intros i j I J. simpl in I, J.
      replace (address (transpose m) i j) with (i * rows m + j)%nat by (unfold address; simpl; lia).
      assert (L : (i * rows m + j < rows m * columns m)%nat) by nia.
      split; [lia|]. rewrite (proj2 (Nat.ltb_lt _ _) L).
      unfold from. destruct (divmod i j (rows m) J) as [-> ->].
      destruct (H j i J I) as [B E]. now rewrite (proj2 (Nat.ltb_lt _ _) B).
  Qed.

  (** Row means and row sums of a compact matrix. *)
  Lemma gives_inside_or e r c s f :
    gives e s f ->
    gives e (IfElse (inside r c) s (integer 0)) (fun q => if Nat.ltb q (r * c) then f q else 0).
  Proof.
    intros F. apply gives_if; [apply says_inside|exact F|apply (gives_integer N tokens e 0)].
  Qed.

  Theorem row_sums_correct r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> holds (row_major s r c) M ->
    holds (row_major (row_sums r c s) r c) (fun i j => sum c (M i)).
  Proof.
    intros C RC [f [F H]].
    pose proof (entries_of N (row_major s r c) f M r c eq_refl H) as E.
    set (g := fun q => if Nat.ltb q (r * c) then f q else 0).
    exists (fun q => INR c * (if Nat.ltb q (r * c)
                              then mean (map g (selected N (in_row c) q)) else 0)).
    split.
    - intros e. simpl. apply gives_multiply; [apply (index_constant N tokens e c)|].
      apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply gives_aggregate; [now apply selects_same_row|now apply gives_inside_or].
    - intros i j I J. simpl in I, J.
      replace (address (row_major (row_sums r c s) r c) i j) with (i * c + j)%nat
        by (unfold address; simpl; lia).
      assert (L : (i * c + j < r * c)%nat) by nia.
      split; [lia|]. rewrite (proj2 (Nat.ltb_lt _ _) L), (row_sum N r c _ g C L RC).
      destruct (divmod i j c J) as [-> _]. apply sum_ext. intros t T0. unfold g.
      assert (L' : (i * c + t < r * c)%nat) by nia.
      rewrite (proj2 (Nat.ltb_lt _ _) L'). now apply E.
  Qed.

  (** A row of biases under every row. *)
  Theorem broadcast_row_correct m r M :
    rows m = 1%nat -> (0 < columns m)%nat -> (r * columns m <= N)%nat ->
    holds m M -> holds (broadcast_row m r) (fun i j => M 0%nat j).
  Proof.
    intros ONE C0 RC [f [F H]].
    exists (fun q => f (address m 0 (q mod columns m))). split.
    - intros e. simpl. apply (gives_entry N tokens e m _ _ (fun _ => 0)%nat (fun q => q mod columns m)%nat);
        [apply index_int| |apply F|].
      + apply index_modulo; [apply gives_indices|apply index_constant|auto].
      + intros q Q. apply H; [lia|apply Nat.mod_upper_bound; lia].
    - intros i j I J. simpl in I, J.
      replace (address (broadcast_row m r) i j) with (i * columns m + j)%nat
        by (unfold address; simpl; lia).
      split; [nia|]. destruct (divmod i j (columns m) J) as [_ ->]. apply H; lia.
  Qed.

  (** Entry by entry, where both lie alike: residual sums and products. *)
  Theorem add_correct s t r c K L :
    holds (row_major s r c) K -> holds (row_major t r c) L ->
    holds (row_major (residual s t) r c) (fun i j => K i j + L i j).
  Proof.
    intros [f [F HK]] [g [G HL]]. exists (fun q => f q + g q). split.
    - intros e. apply gives_add; auto.
    - intros i j I J. destruct (HK i j I J) as [B E], (HL i j I J) as [_ E'].
      split; [exact B|]. unfold address in *; simpl in *. now rewrite E, E'.
  Qed.
End Sums.
