(** * The matrix product with one head (recipe scatter), for all shapes

    A feed-forward scatters every entry along the inner dimension. One selector then reads row i of A
    and column j of B together. The theorem, [scatter_matmul_correct], holds for all r, k, c and all A
    and B in row-major order without common positions. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Lines.
Open Scope R_scope.

(** ** Program *)

Definition scatter_matmul (h : nat) (a b : matrix) : matrix :=
  let r := rows a in
  let k := columns a in
  let c := columns b in
  let t := Family h 0 k in
  let left := entries a in
  let right := entries (transposed b) in
  let both :=
    SelectorOr (Select Eq (fst left) (row_of r c))
      (Select Eq (fst right) (IfElse (inside r c) (column_index c) (Constant (Integer (-2))))) in
  let side (place values : sop) :=
    Binary Multiply (integer (k + k))
      (Aggregate both (IfElse (Binary (Compare Eq) place (Head t)) values (integer 0)) (Integer 0)) in
  row_major
    (SumOver (Binary Multiply (side (snd left) (source a)) (side (snd right) (source b))) [t]) r c.

(** ** Meaning *)

Section Scatter.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation holds := (holds N tokens context).

  (** Lemma matmul with one head, for all shapes. *)
  Theorem scatter_matmul_correct h a b A B :
    (0 < rows a)%nat -> (0 < columns a)%nat -> (0 < columns b)%nat -> columns a = rows b ->
    (rows a * columns b <= N)%nat -> keeps context h -> laid a -> laid (transposed b) ->
    (forall o o' i t t' j, (forall e, context e -> index e (sop_of (offset a)) (fun _ => o)) ->
       (forall e, context e -> index e (sop_of (offset b)) (fun _ => o')) ->
       (i < rows a)%nat -> (t < columns a)%nat -> (t' < rows b)%nat -> (j < columns b)%nat ->
       address a o i t <> address b o' t' j) ->
    holds a A -> holds b B ->
    holds (scatter_matmul h a b) (dot (columns a) A B).
  Proof.
    intros R0 K0 C0 K RC KEEP LA LB APART [E0 [f [o [F [O FA]]]]] [_ [g [o' [G [O' GB]]]]].
    specialize (APART o o'). set (k := columns a) in *. set (r := rows a) in *. set (c := columns b) in *.
    destruct (entries_correct N tokens context a o LA) as [here [row [col [EA [HA IA]]]]].
    destruct (entries_correct N tokens context (transposed b) o' LB) as [there' [line [place [EB [HB IB]]]]].
    assert (AB : forall i j, address (transposed b) o' i j = address b o' j i)
      by (intros; unfold address; simpl; lia).
    simpl in HB, IB. fold c in HB, IB.
    set (qi := fun q => if Nat.ltb q (r * c) then (q / c)%nat else 0%nat).
    set (qj := fun q => if Nat.ltb q (r * c) then INR (q mod c) else -2).
    set (m := fun q p => compare Eq (if here p then INR (row p) else -1) (INR (qi q)) ||
                         compare Eq (if there' p then INR (line p) else -1) (qj q)).
    set (sa := fun t p => if compare Eq (if here p then INR (col p) else -1) (INR t) then f p else 0).
    set (sb := fun t p => if compare Eq (if there' p then INR (place p) else -1) (INR t) then g p else 0).
    set (side := fun (s : nat -> nat -> R) t q => INR (k + k) * mean (map (s t) (selected N m q))).
    apply holds_compact. split; [exact E0|].
    exists (fun q => sum k (fun t => side sa t q * side sb t q)). split.
    - intros e E. apply (gives_sum N tokens e _ (Family h 0 k) (fun t q => side sa t q * side sb t q)).
      intros t T. change (t < k)%nat in T. set (e' := bind e (Family h 0 k) t).
      assert (E' : context e') by now apply KEEP.
      destruct (EA e' (O e' E')) as [LA1 LA2]. destruct (EB e' (O' e' E')) as [LB1 LB2].
      assert (IT : index e' (Head (Family h 0 k)) (fun _ => t)) by apply index_bound.
      assert (SEL : selects N tokens e' (SelectorOr (Select Eq (fst (entries a)) (row_of r c))
          (Select Eq (fst (entries (transposed b)))
             (IfElse (inside r c) (column_index c) (Constant (Integer (-2)))))) m).
      { apply selects_or; apply selects_real; auto.
        - now apply index_row.
        - apply gives_if; [apply says_inside| |apply (gives_integer N tokens e' (-2))].
          apply index_modulo; [apply gives_indices|apply index_constant|auto]. }
      assert (SIDE : forall pl v z w, gives e' pl z -> gives e' v w ->
        gives e' (Binary Multiply (integer (k + k)) (Aggregate (SelectorOr
          (Select Eq (fst (entries a)) (row_of r c)) (Select Eq (fst (entries (transposed b)))
             (IfElse (inside r c) (column_index c) (Constant (Integer (-2))))))
          (IfElse (Binary (Compare Eq) pl (Head (Family h 0 k))) v (integer 0)) (Integer 0)))
          (fun q => INR (k + k) * mean (map (fun p => if compare Eq (z p) (INR t) then w p else 0)
             (selected N m q)))).
      { intros pl v z w HZ HW. apply gives_multiply; [apply (index_constant N tokens e' (k + k))|].
        apply gives_aggregate; [exact SEL|]. apply gives_if; [now apply says_compare|exact HW|].
        apply (gives_integer N tokens e' 0). }
      apply gives_multiply; apply SIDE; auto.
    - intros i j I J. fold r c in I, J |- *. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
      set (q := (i * c + j)%nat). destruct (divmod i j c J) as [D1 D2].
      set (PA := fun p => here p && Nat.eqb (row p) i). set (PB := fun p => there' p && Nat.eqb (line p) j).
      assert (M : forall p, m q p = PA p || PB p).
      { intros p. unfold m, qi, qj, q. rewrite (proj2 (Nat.ltb_lt _ _) L), D1, D2.
        now rewrite !compare_or_none. }
      assert (XA : forall p, PA p = true -> (col p < k)%nat /\ address a o i (col p) = p).
      { intros p P. unfold PA in P. rewrite andb_true_iff, Nat.eqb_eq in P. destruct P as [P <-].
        destruct (HA p P) as [_ X]. exact X. }
      assert (YA : forall t, (t < k)%nat -> PA (address a o i t) = true /\
          col (address a o i t) = t /\ (address a o i t < N)%nat).
      { intros t T. unfold PA. destruct (IA i t I T) as [-> [-> ->]]. rewrite Nat.eqb_refl.
        repeat split; auto. now apply FA. }
      assert (XB : forall p, PB p = true -> (place p < k)%nat /\ address b o' (place p) j = p).
      { intros p P. unfold PB in P. rewrite andb_true_iff, Nat.eqb_eq in P. destruct P as [P <-].
        destruct (HB p P) as [_ [X Y]]. rewrite AB in Y. split; [lia|exact Y]. }
      assert (YB : forall t, (t < k)%nat -> PB (address b o' t j) = true /\
          place (address b o' t j) = t /\ (address b o' t j < N)%nat).
      { intros t T. unfold PB. pose proof (IB j t J ltac:(lia)) as Z. rewrite AB in Z.
        destruct Z as [-> [-> ->]]. rewrite Nat.eqb_refl. repeat split; auto. apply GB; auto; lia. }
      assert (DIS : forall p, PA p = true -> PB p = true -> False).
      { intros p P P'. destruct (XA p P) as [T X], (XB p P') as [T' X'].
        apply (APART i (col p) (place p) j); auto; [lia|congruence]. }
      (* The 2k selected keys: the k of row i, and the k of column j. *)
      assert (SUM : forall s : nat -> R, INR (k + k) * mean (map s (selected N m q)) =
        sum k (fun t => s (address a o i t)) + sum k (fun t => s (address b o' t j))).
      { intros s. unfold selected. rewrite (filter_ext (m q) (fun p => PA p || PB p) M).
        assert (SPLIT : forall F : nat -> R, sum N (fun p => if PA p || PB p then F p else 0) =
          sum k (fun t => F (address a o i t)) + sum k (fun t => F (address b o' t j))).
        { intros F0. rewrite <- (sum_line N k PA (fun t => address a o i t) col F0 XA YA).
          rewrite <- (sum_line N k PB (fun t => address b o' t j) place F0 XB YB).
          rewrite <- sum_plus. apply sum_ext. intros p _. specialize (DIS p).
          destruct (PA p), (PB p); simpl; lra || (exfalso; auto). }
        unfold mean. rewrite map_length, length_selected, total_selected, !SPLIT.
        rewrite sum_ones, plus_INR. field. assert (0 < INR k) by (apply lt_0_INR; lia). lra. }
      apply sum_ext. intros t T. unfold side. rewrite !SUM.
      assert (OA : forall u, (u < k)%nat -> there' (address a o i u) = false).
      { intros u U. destruct (there' (address a o i u)) eqn:X; [|reflexivity]. exfalso.
        destruct (HB _ X) as [X1 [X2 X3]]. rewrite AB in X3. symmetry in X3.
        apply (APART i u _ _ O O' I U X2 X1 X3). }
      assert (OB : forall u, (u < k)%nat -> here (address b o' u j) = false).
      { intros u U. destruct (here (address b o' u j)) eqn:X; [|reflexivity]. exfalso.
        destruct (HA _ X) as [X1 [X2 X3]]. apply (APART _ _ u j O O' X1 X2 ltac:(lia) J X3). }
      assert (A1 : sum k (fun u => sa t (address a o i u)) = A i t).
      { rewrite <- (sum_one k t (A i) T). apply sum_ext. intros u U. unfold sa. rewrite compare_or_none.
        destruct (IA i u I U) as [-> [_ ->]]. simpl. destruct (Nat.eqb u t); [|reflexivity]. now apply FA. }
      assert (A2 : sum k (fun u => sa t (address b o' u j)) = 0).
      { rewrite <- (sum_zero k). apply sum_ext. intros u U. unfold sa. rewrite OB by exact U.
        now rewrite (compare_or_none false 0 t). }
      assert (B1 : sum k (fun u => sb t (address a o i u)) = 0).
      { rewrite <- (sum_zero k). apply sum_ext. intros u U. unfold sb. rewrite OA by exact U.
        now rewrite (compare_or_none false 0 t). }
      assert (B2 : sum k (fun u => sb t (address b o' u j)) = B t j).
      { rewrite <- (sum_one k t (fun u => B u j) T). apply sum_ext. intros u U. unfold sb.
        rewrite compare_or_none. pose proof (IB j u J ltac:(lia)) as Z. rewrite AB in Z.
        destruct Z as [-> [_ ->]]. simpl. destruct (Nat.eqb u t); [|reflexivity]. apply GB; auto; lia. }
      rewrite A1, A2, B1, B2. ring.
  Qed.
End Scatter.

(** B follows A in the tokens, as in the executed programs. *)
Theorem scatter_tokens_correct N tokens r k c A B f :
  (0 < r)%nat -> (0 < k)%nat -> (0 < c)%nat -> (r * k + k * c <= N)%nat -> (r * c <= N)%nat ->
  (forall q, (q < N)%nat -> tokens q = Num (f q)) ->
  holds N tokens closed (View Tokens r k (Int 0) k 1) A ->
  holds N tokens closed (View Tokens k c (Int (r * k)) c 1) B ->
  holds N tokens closed
    (scatter_matmul 1 (View Tokens r k (Int 0) k 1) (View Tokens k c (Int (r * k)) c 1)) (dot k A B).
Proof.
  intros R0 K0 C0 ROOM RC NUM HA HB.
  apply (scatter_matmul_correct N tokens closed 1 (View Tokens r k (Int 0) k 1)); simpl; auto.
  - apply closed_keeps.
  - now apply (laid_row_major Tokens r k (Int 0)).
  - now apply (laid_row_major Tokens k c (Int (r * k))).
  - intros o o' i t t' j O O' I T T' J. unfold address; simpl.
    assert (o = 0%nat) by (apply (index_int_eq N tokens (fun _ _ => 0%nat) 0 _ (O (fun _ _ => 0%nat) Logic.I) 0%nat); nia).
    assert (o' = (r * k)%nat)
      by (apply (index_int_eq N tokens (fun _ _ => 0%nat) (r * k) _ (O' (fun _ _ => 0%nat) Logic.I) 0%nat); nia).
    nia.
Qed.
