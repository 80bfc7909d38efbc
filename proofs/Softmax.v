(** * Softmax of the rows of a matrix, for all shapes: plain, stable, masked, for e and bases > 1

    The theorem, [softmax_correct], is about entry (i, j) of [softmax]. If the mask keeps the entry,
    it is base^(Mᵢⱼ), divided by the sum over the kept entries of the row. All other entries are 0. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices.
Open Scope R_scope.

(** ** Programs *)

Definition row_index (c : nat) : sop := Binary FloorDivide Indices (integer c).
Definition column_index (c : nat) : sop := Binary Modulo Indices (integer c).

(** Each position selects the entries of the same row. *)
Definition same_row (c : nat) : selector := Select Eq (row_index c) (row_index c).

(** The selected key with the largest score, or the leftmost of several such keys. *)
Definition greatest (s : selector) (score : sop) : selector :=
  Best (Best s score) (Unary Negate Indices).

(** The kept scores, and 0 elsewhere. *)
Definition safe (kept s : sop) : sop := IfElse kept s (integer 0).

Definition row_maximum (c : nat) (kept s : sop) : sop :=
  Aggregate
    (greatest (SelectorAnd (same_row c) (Select Eq kept (Constant (Boolean true)))) (safe kept s))
    (safe kept s) (Integer 0).

(** The exponential: e to the power of s, or another base. *)
Inductive exponential := Natural | Base (b : atom).
Definition raised (x : exponential) (s : sop) : sop :=
  match x with Natural => Unary Exp s | Base b => Binary Power (Constant b) s end.
Definition raise (x : exponential) (t : R) : R :=
  match x with Natural => exp t | Base b => Rpower (number (value_of b)) t end.
Definition valid (x : exponential) : Prop :=
  match x with Natural => True | Base b => is_number (value_of b) = true /\ 1 < number (value_of b) end.

Definition weights (stable : bool) (x : exponential) (kept : sop) (c : nat) (s : sop) : sop :=
  IfElse kept
    (raised x
       (if stable
        then IfElse kept (Binary Subtract (safe kept s) (row_maximum c kept s)) (integer 0)
        else safe kept s))
    (integer 0).

(** weight / (c · mean of the weights of the row). RASP divides at every position, so the divisor is 1
    at positions that are not kept. *)
Definition divided (kept weight sums : sop) : sop :=
  Binary Divide weight (IfElse kept sums (integer 1)).
Definition frugal_sums (c : nat) (weight : sop) : sop :=
  Binary Multiply (integer c) (Aggregate (same_row c) weight (Integer 0)).

Definition softmax (stable : bool) (x : exponential) (kept : sop) (c : nat) (s : sop) : sop :=
  let w := weights stable x kept c s in divided kept w (frugal_sums c w).

Definition plain_softmax (r c : nat) (s : sop) : sop := softmax false Natural (inside r c) c s.
Definition stable_softmax (r c : nat) (s : sop) : sop := softmax true Natural (inside r c) c s.

(** Masks: column j ≤ row i; the first columns; a matrix whose entry is not 0. *)
Definition causal (r c : nat) : sop :=
  Binary And (inside r c) (Binary (Compare Le) (column_index c) (row_index c)).
Definition first_columns (r c : nat) (count : sop) : sop :=
  Binary And (inside r c) (Binary (Compare Lt) (column_index c) count).
Definition kept_by (r c : nat) (mask : sop) : sop :=
  Binary And (inside r c) (Binary (Compare Ne) mask (integer 0)).

(** ** Meaning *)

Definition softmax_of (x : exponential) (keep : nat -> bool) (c : nat) (row : nat -> R) (j : nat) : R :=
  if keep j then raise x (row j) / sum c (fun t => if keep t then raise x (row t) else 0) else 0.

Lemma total_map (f : nat -> R) a n :
  total (map f (map (fun t => a + t)%nat (seq 0 n))) = sum n (fun t => f (a + t)%nat).
Proof.
  induction n; [reflexivity|].
  replace (S n) with (n + 1)%nat at 1 by lia.
  rewrite seq_app, !map_app. simpl. rewrite <- IHn.
  generalize (map f (map (fun t => (a + t)%nat) (seq 0 n))).
  induction l; simpl; [lra|]. rewrite IHl. lra.
Qed.

Lemma sum_positive n f : (0 < n)%nat -> (forall k, 0 < f k) -> 0 < sum n f.
Proof.
  intros H P. induction n as [|[|n] IH]; [lia|simpl; specialize (P 0%nat); lra|].
  change (sum (S (S n)) f) with (sum (S n) f + f (S n)).
  specialize (P (S n)). assert (0 < sum (S n) f) by (apply IH; lia). lra.
Qed.

Lemma sum_some_positive n f j :
  (j < n)%nat -> (forall k, 0 <= f k) -> 0 < f j -> 0 < sum n f.
Proof.
  intros J P F. induction n as [|n IH]; [lia|]. simpl.
  assert (A : 0 <= sum n f) by (clear -P; induction n; simpl; [lra|specialize (P n); lra]).
  destruct (Nat.eq_dec j n) as [->|D]; [lra|]. specialize (P n).
  assert (0 < sum n f) by (apply IH; lia). lra.
Qed.

Lemma sum_positive_below n f : (0 < n)%nat -> (forall k, (k < n)%nat -> 0 < f k) -> 0 < sum n f.
Proof.
  intros H P. induction n as [|[|n] IH]; [lia|simpl; specialize (P 0%nat ltac:(lia)); lra|].
  change (sum (S (S n)) f) with (sum (S n) f + f (S n)).
  assert (0 < sum (S n) f) by (apply IH; [lia|intros; apply P; lia]).
  specialize (P (S n) ltac:(lia)). lra.
Qed.

Lemma sum_scaled n f a : sum n (fun k => f k * a) = sum n f * a.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Section Softmax.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation says := (says N tokens).
  Notation selects := (selects N tokens).
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).

  Lemma index_row_index e c : (0 < c)%nat -> index e (row_index c) (fun q => q / c)%nat.
  Proof.
    intros C. apply index_floor_divide; [apply gives_indices|apply index_constant|auto].
  Qed.

  Definition in_row c (q k : nat) : bool := Nat.eqb (k / c) (q / c).

  Lemma selects_same_row e c : (0 < c)%nat -> selects e (same_row c) (in_row c).
  Proof. intros C. now apply selects_equal; apply index_row_index. Qed.

  Lemma selected_row r c q : (0 < c)%nat -> (q < r * c)%nat -> (r * c <= N)%nat ->
    selected N (in_row c) q = map (fun t => q / c * c + t)%nat (seq 0 c).
  Proof.
    intros C Q RC. unfold selected, in_row. set (i := (q / c)%nat).
    assert (I : (i < r)%nat) by (apply Nat.div_lt_upper_bound; lia).
    replace N with (i * c + (c + (N - (i * c + c))))%nat by nia.
    rewrite !seq_app, !filter_app. rewrite filter_none.
    2:{ intros k K. apply in_seq in K. apply Nat.eqb_neq.
        assert (k / c < i)%nat by (apply Nat.div_lt_upper_bound; lia). lia. }
    rewrite (filter_none _ (seq (0 + i * c + c) _)).
    2:{ intros k K. apply in_seq in K. apply Nat.eqb_neq.
        assert (i + 1 <= k / c)%nat by (apply Nat.div_le_lower_bound; lia). lia. }
    rewrite app_nil_r. simpl.
    assert (E : forall n, (n <= c)%nat ->
      filter (fun k => Nat.eqb (k / c) i) (seq (i * c) n) = map (fun t => i * c + t)%nat (seq 0 n)).
    { induction n; [reflexivity|]. intros L.
      replace (S n) with (n + 1)%nat by lia. rewrite !seq_app, filter_app, map_app, IHn by lia.
      f_equal. simpl. destruct (divmod i n c ltac:(lia)) as [-> _]. now rewrite Nat.eqb_refl. }
    now apply E.
  Qed.

  Lemma row_sum r c q (w : nat -> R) : (0 < c)%nat -> (q < r * c)%nat -> (r * c <= N)%nat ->
    INR c * mean (map w (selected N (in_row c) q)) = sum c (fun t => w (q / c * c + t)%nat).
  Proof.
    intros C Q RC. rewrite (selected_row r c q C Q RC). unfold mean.
    rewrite total_map, !map_length, seq_length. field. apply not_0_INR; lia.
  Qed.

  (** *** Selectors of the largest score depend only on the row *)
  Lemma selects_and e a b m n :
    selects e a m -> selects e b n -> selects e (SelectorAnd a b) (fun q k => m q k && n q k).
  Proof.
    intros [x [E X]] [y [F Y]]. unfold Reasoning.selects.
    change (select N tokens (SelectorAnd a b) e) with
      (match select N tokens a e, select N tokens b e with
       | Some x, Some y => Some (fun i j => x i j && y i j) | _, _ => None end).
    rewrite E, F. eexists; split; [reflexivity|]. intros q k Q K. cbv beta. now rewrite X, Y.
  Qed.

  Lemma selects_best e a p m f :
    selects e a m -> gives e p f ->
    selects e (Best a p) (fun q => best (fun k => Num (f k)) (selected N m q)).
  Proof.
    intros [x [E X]] [v [F V]]. unfold Reasoning.selects.
    change (select N tokens (Best a p) e) with
      (match select N tokens a e, eval N tokens p e with
       | Some x, Some v => Some (fun i j => best v (selected N x i) j) | _, _ => None end).
    rewrite E, F. eexists; split; [reflexivity|]. intros q k Q K. cbv beta.
    rewrite (selected_ext N x m q) by (intros; now apply X).
    unfold best. f_equal. rewrite V by exact K.
    assert (A : forall l, (forall i, In i l -> (i < N)%nat) ->
      forallb (fun other => compare Ge (number (Num (f k))) (number (v other))) l
      = forallb (fun other => compare Ge (number (Num (f k))) (number (Num (f other)))) l).
    { induction l as [|i l IH]; [reflexivity|]. intros B. cbn [forallb].
      rewrite (V i) by (apply B; now left). f_equal. apply IH. intros; apply B; now right. }
    apply A. intros i I. now apply selected_below in I.
  Qed.

  Lemma selects_true e c b :
    says e c b -> selects e (Select Eq c (Constant (Boolean true))) (fun q k => b k).
  Proof.
    intros [x [E X]]. unfold Reasoning.selects. rewrite select_select, E. cbn [eval].
    eexists; split; [reflexivity|]. intros q k Q K. cbv beta. rewrite X by exact K.
    unfold compare, number, value_of.
    destruct (b k); destruct (Req_EM_T _ _); auto; lra.
  Qed.

  Lemma says_and e a b f g :
    says e a f -> says e b g -> says e (Binary And a b) (fun q => f q && g q).
  Proof.
    intros [v [E V]] [w [F W]]. unfold Reasoning.says. cbn [eval]. rewrite E, F.
    destruct (everywhere_some _ N (fun q => apply2 And (v q) (w q)) (Num 0)
                (fun q => Bool (f q && g q))) as [u [D U]].
    - intros q Q. now rewrite V, W by exact Q.
    - exists u; split; [exact D|exact U].
  Qed.
  Lemma says_ext e p f g : (forall q, (q < N)%nat -> f q = g q) -> says e p f -> says e p g.
  Proof.
    intros H [h [E G]]. exists h; split; [exact E|]. intros q Q. rewrite <- H by exact Q. auto.
  Qed.

  (** *** The exponential of a sum is a product of exponentials *)
  Lemma raise_pos x t : 0 < raise x t.
  Proof. destruct x; simpl; [apply exp_pos|unfold Rpower; apply exp_pos]. Qed.
  Lemma raise_minus x s t : raise x (s - t) = raise x s * raise x (- t).
  Proof.
    unfold Rminus. destruct x; simpl; [apply exp_plus|]. now rewrite Rpower_plus.
  Qed.
  Lemma raise_zero x : raise x (- 0) = 1.
  Proof. destruct x; simpl; unfold Rpower; [|rewrite Ropp_0, Rmult_0_l]; rewrite ?Ropp_0; apply exp_0. Qed.

  Lemma gives_raised e x s f : valid x -> gives e s f -> gives e (raised x s) (fun q => raise x (f q)).
  Proof.
    intros V F. destruct x as [|b]; simpl; [now apply gives_exp|]. destruct V as [B V].
    apply (gives_binary N tokens e Power (Constant b) s (fun _ => number (value_of b)) f).
    - eexists; split; [reflexivity|]. intros q Q. cbv beta. now destruct (value_of b).
    - exact F.
    - intros q Q. unfold apply2, power. cbn [number].
      destruct (Rlt_dec 0 (number (value_of b))); [reflexivity|lra].
  Qed.

  (** *** The result does not change if a number is added to all scores of a row *)
  Section Kept.
    Variables (r c : nat) (x : exponential) (kept : sop) (K : nat -> bool).
    Hypothesis columns_exist : (0 < c)%nat.
    Hypothesis room : (r * c <= N)%nat.
    Hypothesis base : valid x.
    Hypothesis says_kept : forall e, context e -> says e kept K.
    Hypothesis kept_inside : forall q, K q = true -> (q < r * c)%nat.

    Lemma gives_safe e s f : context e -> gives e s f ->
      gives e (safe kept s) (fun q => if K q then f q else 0).
    Proof.
      intros E F. apply gives_if; [now apply says_kept|exact F|apply (gives_integer N tokens e 0)].
    Qed.

    (** The number that is subtracted is the same for all entries of a row. *)
    Lemma gives_row_maximum s f : (forall e, context e -> gives e s f) ->
      exists top, forall e, context e -> gives e (row_maximum c kept s) (fun q => top (q / c)%nat).
    Proof.
      intros F. set (g := fun q => if K q then f q else 0).
      assert (G : forall e, context e -> gives e (safe kept s) g) by (intros; apply gives_safe; auto).
      set (m := fun q k => in_row c q k && K k).
      set (first := fun q => best (fun k => Num (g k)) (selected N m q)).
      set (second := fun q => best (fun k => Num (- INR k)) (selected N first q)).
      assert (S : forall e, context e -> selects e (greatest (SelectorAnd (same_row c)
          (Select Eq kept (Constant (Boolean true)))) (safe kept s)) second).
      { intros e E. apply selects_best; [apply selects_best|]; [|exact (G e E)|].
        - apply selects_and; [now apply selects_same_row|now apply selects_true, says_kept].
        - apply gives_negate, gives_indices. }
      exists (fun i => mean (map g (selected N second (i * c)%nat))). intros e E.
      eapply gives_ext; [|exact (gives_aggregate N tokens e _ _ _ _ (S e E) (G e E))].
      intros q Q. cbv beta. do 2 f_equal.
      apply selected_at. intros k _. unfold second. f_equal.
      apply selected_at. intros k' _. unfold first. f_equal.
      apply selected_at. intros k'' _. unfold m, in_row. now rewrite Nat.div_mul by lia.
    Qed.

    Lemma gives_weights stable s f : (forall e, context e -> gives e s f) ->
      exists mu, forall e, context e -> gives e (weights stable x kept c s)
        (fun q => if K q then raise x (f q - mu (q / c)%nat) else 0).
    Proof.
      intros F. destruct stable.
      - destruct (gives_row_maximum s f F) as [top T]. exists top. intros e E.
        eapply gives_ext; [|apply gives_if; [now apply says_kept| |apply (gives_integer N tokens e 0)]].
        2:{ apply gives_raised; [exact base|]. apply gives_if; [now apply says_kept| |
              apply (gives_integer N tokens e 0)].
            apply gives_subtract; [apply gives_safe; [exact E|exact (F e E)]|exact (T e E)]. }
        intros q Q. cbv beta. destruct (K q); reflexivity.
      - exists (fun _ => 0). intros e E.
        eapply gives_ext; [|apply gives_if; [now apply says_kept| |apply (gives_integer N tokens e 0)]].
        2:{ apply gives_raised; [exact base|]. apply gives_safe; [exact E|exact (F e E)]. }
        intros q Q. cbv beta. destruct (K q); [|reflexivity]. now rewrite Rminus_0_r.
    Qed.

    Lemma softmax_of_weights M (mu : nat -> R) (w sums : sop) (f z : nat -> R) :
      (exists e, context e) ->
      (forall i j, (i < r)%nat -> (j < c)%nat -> f (i * c + j)%nat = M i j) ->
      let u := fun q => if K q then raise x (f q - mu (q / c)%nat) else 0 in
      (forall e, context e -> gives e w u) ->
      (forall e, context e -> gives e sums z) ->
      (forall q, (q < r * c)%nat -> z q = sum c (fun t => u (q / c * c + t)%nat)) ->
      holds (row_major (divided kept w sums) r c)
        (fun i j => softmax_of x (fun t => K (i * c + t)%nat) c (M i) j).
    Proof.
      intros C FM u W S ZU.
      set (keep := fun i t => K (i * c + t)%nat).
      set (Z := fun i => sum c (fun t => if keep i t then raise x (M i t) else 0)).
      set (d := fun q => if K q then z q else 1).
      assert (ROW : forall i j, (i < r)%nat -> (j < c)%nat ->
        z (i * c + j)%nat = Z i * raise x (- mu i)).
      { intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia.
        rewrite (ZU _ L). destruct (divmod i j c J) as [-> _]. unfold Z.
        rewrite <- sum_scaled. apply sum_ext. intros t T0. unfold u, keep.
        destruct (divmod i t c T0) as [-> _]. destruct (K (i * c + t)%nat); [|lra].
        rewrite FM by assumption. apply raise_minus. }
      assert (POS : forall i j, (i < r)%nat -> (j < c)%nat -> keep i j = true -> 0 < Z i).
      { intros i j I J KEEP. unfold Z. apply sum_some_positive with j; [exact J| |].
        - intros t. destruct (keep i t); [left; apply raise_pos|right; reflexivity].
        - rewrite KEEP. apply raise_pos. }
      apply holds_compact. split; [exact C|]. exists (fun q => u q / d q). split.
      - intros e E. apply gives_divide; [exact (W e E)| |].
        + apply gives_if; [now apply says_kept|exact (S e E)|apply (gives_integer N tokens e 1)].
        + intros q Q. unfold d. destruct (K q) eqn:KQ; [|lra].
          pose proof (kept_inside q KQ) as L.
          assert (I : (q / c < r)%nat) by (apply Nat.div_lt_upper_bound; lia).
          assert (J : (q mod c < c)%nat) by (apply Nat.mod_upper_bound; lia).
          assert (D : q = (q / c * c + q mod c)%nat)
            by (rewrite Nat.mul_comm; apply Nat.div_mod; lia).
          rewrite D at 1. rewrite ROW by assumption. apply Rgt_not_eq, Rmult_gt_0_compat.
          * apply (POS _ (q mod c)%nat); auto. unfold keep. now rewrite <- D.
          * apply raise_pos.
      - intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
        unfold softmax_of, d, u. destruct (K (i * c + j)%nat) eqn:KEEP; [|unfold Rdiv; lra].
        rewrite ROW by assumption. destruct (divmod i j c J) as [-> _]. rewrite FM by assumption.
        rewrite raise_minus. specialize (POS i j I J KEEP). pose proof (raise_pos x (- mu i)).
        change (sum c _) with (Z i). field. split; lra.
    Qed.

    (** Lemma softmax, for all shapes, with or without the row maximum subtracted first. *)
    Theorem softmax_correct stable s M :
      holds (row_major s r c) M ->
      holds (row_major (softmax stable x kept c s) r c)
        (fun i j => softmax_of x (fun t => K (i * c + t)%nat) c (M i) j).
    Proof.
      intros H. apply holds_compact in H. destruct H as [C [f [F H]]].
      destruct (gives_weights stable s f F) as [mu W].
      eapply (softmax_of_weights M mu _ _ f _ C); [|exact W| |].
      - intros i j I J. now apply H.
      - intros e E. apply gives_multiply; [apply (index_constant N tokens e c)|].
        apply gives_aggregate; [now apply selects_same_row|exact (W e E)].
      - intros q L. exact (row_sum r c q _ columns_exist L room).
    Qed.
  End Kept.
End Softmax.
