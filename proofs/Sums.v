(** * From means to sums (Proposition AHAT), copies, repeated rows, residual sums

    The theorems are [summed_correct] and [summed_by_correct] (Proposition AHAT), [transpose_correct]
    (Lemma transposition), [copied_correct], [row_means_correct], [row_sums_correct],
    [broadcast_row_correct], [add_correct] and [multiply_correct]. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax.
Open Scope R_scope.

(** ** Programs *)

(** The sum of the selected values: their mean times their number. *)
Definition summed (s : selector) (values : sop) : sop :=
  Binary Multiply (Width s) (Aggregate s values (Integer 0)).
Definition summed_by (count : nat) (s : selector) (values : sop) : sop :=
  Binary Multiply (integer count) (Aggregate s values (Integer 0)).

(** The transpose with the head of the paper: position i·r + j of the result fetches entry (j, i). *)
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

(** A 1×c matrix repeated in every row. *)
Definition broadcast_row (m : matrix) (r : nat) : matrix :=
  row_major (entry m (Int 0) (At (Binary Modulo Indices (integer (columns m))))) r (columns m).
(** A copy of a view by one head, in row-major order from position 0. *)
Definition copied (m : matrix) : matrix :=
  row_major
    (IfElse (inside (rows m) (columns m))
       (entry m (At (row_index (columns m))) (At (column_index (columns m)))) (integer 0))
    (rows m) (columns m).
Definition residual (s t : sop) : sop := Binary Add s t.

(** ** Meaning *)
Section Sums.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation selects := (selects N tokens).
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).

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

  (** Proposition AHAT: attention averages, and a feed-forward computes the sum, which is 0 for no
      keys. *)
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

  (** A matrix whose entry (i, j) is fetched at position i·c + j, and 0 elsewhere. *)
  Lemma gathered_correct m M r c i j f g :
    (0 < c)%nat -> (r * c <= N)%nat -> holds m M ->
    (forall e, context e -> index e i f) -> (forall e, context e -> index e j g) ->
    (forall p q, (p < r)%nat -> (q < c)%nat ->
       (f (p * c + q) < rows m)%nat /\ (g (p * c + q) < columns m)%nat) ->
    holds (row_major (IfElse (inside r c) (entry m (At i) (At j)) (integer 0)) r c)
      (fun p q => M (f (p * c + q)%nat) (g (p * c + q)%nat)).
  Proof.
    intros C RC [E0 [v [o [F [O H]]]]] I J B.
    set (from := fun q => address m o (f q) (g q)).
    apply holds_compact. split; [exact E0|].
    exists (fun q => if Nat.ltb q (r * c)
                     then if Nat.ltb (from q) N then v (from q) else 0 else 0). split.
    - intros e E. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply (gives_entry_or N tokens e m _ _ o f g); auto; simpl; auto.
    - intros p q P Q. assert (L : (p * c + q < r * c)%nat) by nia. split; [lia|].
      rewrite (proj2 (Nat.ltb_lt _ _) L). destruct (B p q P Q) as [B1 B2].
      destruct (H _ _ B1 B2) as [L' V]. unfold from. now rewrite (proj2 (Nat.ltb_lt _ _) L').
  Qed.

  (** Lemma transposition with the head of the paper, for all shapes. *)
  Theorem transpose_correct m M :
    (0 < rows m)%nat -> (0 < columns m)%nat -> (rows m * columns m <= N)%nat ->
    holds m M -> holds (transpose m) (fun i j => M j i).
  Proof.
    intros R0 C0 RC H. unfold transpose.
    replace (inside (rows m) (columns m)) with (inside (columns m) (rows m))
      by (unfold inside; now rewrite Nat.mul_comm).
    eapply holds_ext; [|apply (gathered_correct m M (columns m) (rows m) _ _
      (fun q => q mod rows m)%nat (fun q => q / rows m)%nat R0 ltac:(lia) H)].
    - intros i j I J. simpl in I, J. now destruct (divmod i j (rows m) J) as [-> ->].
    - intros e E. apply index_modulo; [apply gives_indices|apply index_constant|auto].
    - intros e E. apply index_floor_divide; [apply gives_indices|apply index_constant|auto].
    - intros p q P Q. destruct (divmod p q (rows m) Q) as [-> ->]. auto.
  Qed.

  Theorem copied_correct m M :
    (0 < columns m)%nat -> (rows m * columns m <= N)%nat -> holds m M -> holds (copied m) M.
  Proof.
    intros C0 RC H.
    eapply holds_ext; [|apply (gathered_correct m M (rows m) (columns m) _ _
      (fun q => q / columns m)%nat (fun q => q mod columns m)%nat C0 RC H)].
    - intros i j I J. simpl in I, J. now destruct (divmod i j (columns m) J) as [-> ->].
    - intros e E. now apply index_row_index.
    - intros e E. apply index_modulo; [apply gives_indices|apply index_constant|auto].
    - intros p q P Q. destruct (divmod p q (columns m) Q) as [-> ->]. auto.
  Qed.

  (** Row means and row sums of a compact matrix. *)
  Lemma gives_inside_or e r c s f :
    gives e s f ->
    gives e (IfElse (inside r c) s (integer 0)) (fun q => if Nat.ltb q (r * c) then f q else 0).
  Proof.
    intros F. apply gives_if; [apply says_inside|exact F|apply (gives_integer N tokens e 0)].
  Qed.

  Theorem row_means_correct r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> holds (row_major s r c) M ->
    holds (row_major (row_means r c s) r c) (fun i j => sum c (M i) / INR c).
  Proof.
    intros C RC H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    set (g := fun q => if Nat.ltb q (r * c) then f q else 0).
    apply holds_compact. split; [exact E0|].
    exists (fun q => if Nat.ltb q (r * c) then mean (map g (selected N (in_row c) q)) else 0).
    split.
    - intros e E. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply gives_aggregate; [now apply selects_same_row|apply gives_inside_or; auto].
    - intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia.
      split; [lia|]. rewrite (proj2 (Nat.ltb_lt _ _) L).
      assert (INR c <> 0) by (apply not_0_INR; lia).
      apply Rmult_eq_reg_l with (INR c); [|assumption]. rewrite (row_sum N r c _ g C L RC).
      destruct (divmod i j c J) as [-> _].
      transitivity (sum c (M i)); [|field; assumption]. apply sum_ext. intros t T0. unfold g.
      assert (L' : (i * c + t < r * c)%nat) by nia.
      rewrite (proj2 (Nat.ltb_lt _ _) L'). now apply H.
  Qed.

  (** Every entry times a number of the program. *)
  Lemma scaled_correct n s r c M :
    holds (row_major s r c) M ->
    holds (row_major (Binary Multiply (integer n) s) r c) (fun i j => INR n * M i j).
  Proof.
    apply (map_correct N tokens context s _ r c M (fun v => INR n * v)).
    intros e f E F. exists (fun q => INR n * f q). split; [|reflexivity].
    apply gives_multiply; [apply (index_constant N tokens e n)|exact F].
  Qed.

  Theorem row_sums_correct r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> holds (row_major s r c) M ->
    holds (row_major (row_sums r c s) r c) (fun i j => sum c (M i)).
  Proof.
    intros C RC H. eapply holds_ext; [|exact (scaled_correct c _ r c _ (row_means_correct r c s M C RC H))].
    intros i j I J. cbv beta. field. apply not_0_INR; lia.
  Qed.

  (** A row, such as a row of biases, repeated in every row. *)
  Theorem broadcast_row_correct m r M :
    rows m = 1%nat -> (0 < columns m)%nat -> (r * columns m <= N)%nat ->
    holds m M -> holds (broadcast_row m r) (fun i j => M 0%nat j).
  Proof.
    intros ONE C0 RC [E0 [f [o [F [O H]]]]]. apply holds_compact. split; [exact E0|].
    exists (fun q => f (address m o 0 (q mod columns m))). split.
    - intros e E. apply (gives_entry N tokens e m _ _ o (fun _ => 0)%nat (fun q => q mod columns m)%nat);
        [now apply O|apply index_int| |now apply F|].
      + apply index_modulo; [apply gives_indices|apply index_constant|auto].
      + intros q Q. apply H; [lia|apply Nat.mod_upper_bound; lia].
    - intros i j I J.
      split; [nia|]. destruct (divmod i j (columns m) J) as [_ ->]. apply H; lia.
  Qed.

  (** Residual sums and products of matrices with the same layout. *)
  Lemma entrywise_correct op (phi : R -> R -> R) s t r c K L :
    (forall a b, apply2 op (Num a) (Num b) = Some (Num (phi a b))) ->
    holds (row_major s r c) K -> holds (row_major t r c) L ->
    holds (row_major (Binary op s t) r c) (fun i j => phi (K i j) (L i j)).
  Proof.
    intros P HK HL. apply holds_compact in HK, HL.
    destruct HK as [E0 [f [F HK]]], HL as [_ [g [G HL]]].
    apply holds_compact. split; [exact E0|]. exists (fun q => phi (f q) (g q)). split.
    - intros e E. apply (gives_binary N tokens e op s t f g); auto.
    - intros i j I J. destruct (HK i j I J) as [B E], (HL i j I J) as [_ E'].
      split; [exact B|]. now rewrite E, E'.
  Qed.
  Theorem add_correct s t r c K L :
    holds (row_major s r c) K -> holds (row_major t r c) L ->
    holds (row_major (residual s t) r c) (fun i j => K i j + L i j).
  Proof. now apply (entrywise_correct Add Rplus). Qed.
  Theorem multiply_correct s t r c K L :
    holds (row_major s r c) K -> holds (row_major t r c) L ->
    holds (row_major (Binary Multiply s t) r c) (fun i j => K i j * L i j).
  Proof. now apply (entrywise_correct Multiply Rmult). Qed.
End Sums.
