(** * Softmax of the rows of a matrix: plain and stable, for all shapes *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices.
Open Scope R_scope.

(** ** Programs *)

Definition row_index (c : nat) : sop := Binary FloorDivide Indices (integer c).

(** Each position selects the entries of its own row. *)
Definition same_row (c : nat) : selector := Select Eq (row_index c) (row_index c).

(** Of the selected keys the one of greatest score; of several, the leftmost. *)
Definition greatest (s : selector) (score : sop) : selector :=
  Best (Best s score) (Unary Negate Indices).

(** The scores, 0 behind the matrix: functions such as exp must not see what is there. *)
Definition safe (r c : nat) (s : sop) : sop := IfElse (inside r c) s (integer 0).

Definition row_maximum (r c : nat) (s : sop) : sop :=
  Aggregate
    (greatest (SelectorAnd (same_row c) (Select Eq (inside r c) (Constant (Boolean true))))
       (safe r c s))
    (safe r c s) (Integer 0).

Definition shifted (r c : nat) (s : sop) : sop :=
  IfElse (inside r c) (Binary Subtract (safe r c s) (row_maximum r c s)) (integer 0).

(** weight / (c · mean of the weights of the row); RASP divides at every position, so by 1 outside. *)
Definition divided_by_row_sums (r c : nat) (weight : sop) : sop :=
  Binary Divide weight
    (IfElse (inside r c)
       (Binary Multiply (integer c) (Aggregate (same_row c) weight (Integer 0)))
       (integer 1)).

Definition exponentials (r c : nat) (s : sop) : sop :=
  IfElse (inside r c) (Unary Exp s) (integer 0).

Definition plain_softmax (r c : nat) (s : sop) : sop :=
  divided_by_row_sums r c (exponentials r c (safe r c s)).

Definition stable_softmax (r c : nat) (s : sop) : sop :=
  divided_by_row_sums r c (exponentials r c (shifted r c s)).

(** ** What they mean *)

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

Lemma sum_scaled n f a : sum n (fun k => f k * a) = sum n f * a.
Proof. induction n; simpl; [lra|]. rewrite IHn. lra. Qed.

Section Softmax.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Notation index := (index N tokens).
  Notation says := (says N tokens).
  Notation selects := (selects N tokens).

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

  (** *** Selectors of the greatest score: all that matters is that they depend on the row alone *)
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

  (** The number that is subtracted is the same for all entries of a row. *)
  Lemma gives_row_maximum r c s f : (0 < c)%nat ->
    (forall e, gives e s f) ->
    exists top, forall e, gives e (row_maximum r c s) (fun q => top (q / c)%nat).
  Proof.
    intros C F.
    set (g := fun q => if Nat.ltb q (r * c) then f q else 0).
    assert (G : forall e, gives e (safe r c s) g).
    { intros e. eapply gives_ext; [|exact (gives_if N tokens e _ _ _ _ _ _ (says_inside N tokens e r c)
        (F e) (gives_integer N tokens e 0))]. intros q Q. reflexivity. }
    set (m := fun q k => in_row c q k && Nat.ltb k (r * c)).
    set (first := fun q => best (fun k => Num (g k)) (selected N m q)).
    set (second := fun q => best (fun k => Num (- INR k)) (selected N first q)).
    assert (S : forall e, selects e (greatest (SelectorAnd (same_row c)
        (Select Eq (inside r c) (Constant (Boolean true)))) (safe r c s)) second).
    { intros e. apply selects_best; [apply selects_best|]; [|exact (G e)|].
      - apply selects_and; [now apply selects_same_row|apply selects_true, says_inside].
      - apply gives_negate, gives_indices. }
    exists (fun i => mean (map g (selected N second (i * c)%nat))). intros e.
    eapply gives_ext; [|exact (gives_aggregate N tokens e _ _ _ _ (S e) (G e))].
    intros q Q. cbv beta. do 2 f_equal.
    apply selected_at. intros k K. unfold second. f_equal.
    apply selected_at. intros k' K'. unfold first. f_equal.
    apply selected_at. intros k'' _. unfold m, in_row. now rewrite Nat.div_mul by lia.
  Qed.

  (** *** Every form is softmax: a shift of the scores of a row cancels *)
  Lemma softmax_of_weights r c s M (mu : nat -> R) (w sums : sop) (f z : nat -> R) :
    (0 < c)%nat -> (r * c <= N)%nat ->
    (forall e, gives e s f) ->
    (forall i j, (i < r)%nat -> (j < c)%nat -> f (i * c + j)%nat = M i j) ->
    let u := fun q => if Nat.ltb q (r * c) then exp (f q - mu (q / c)%nat) else 0 in
    (forall e, gives e w u) ->
    (forall e, gives e sums z) ->
    (forall q, (q < r * c)%nat -> z q = sum c (fun t => u (q / c * c + t)%nat)) ->
    holds N tokens (row_major (Binary Divide w (IfElse (inside r c) sums (integer 1))) r c)
      (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
  Proof.
    intros C RC F FM u W S ZU.
    set (d := fun q => if Nat.ltb q (r * c) then z q else 1).
    assert (POS : forall i, (i < r)%nat -> 0 < sum c (fun t => exp (M i t))).
    { intros i I. apply sum_positive; [exact C|]. intros; apply exp_pos. }
    assert (ROW : forall i j, (i < r)%nat -> (j < c)%nat ->
      d (i * c + j)%nat = sum c (fun t => exp (M i t)) * exp (- mu i)).
    { intros i j I J. unfold d. assert (L : (i * c + j < r * c)%nat) by nia.
      rewrite (proj2 (Nat.ltb_lt _ _) L), (ZU _ L).
      destruct (divmod i j c J) as [-> _]. rewrite <- sum_scaled. apply sum_ext. intros t T0.
      unfold u. assert (L' : (i * c + t < r * c)%nat) by nia.
      rewrite (proj2 (Nat.ltb_lt _ _) L'). destruct (divmod i t c T0) as [-> _].
      rewrite FM by assumption. unfold Rminus. apply exp_plus. }
    exists (fun q => u q / d q). split.
    - intros e. simpl. apply gives_divide; [exact (W e)| |].
      + apply gives_if; [apply says_inside|exact (S e)|apply (gives_integer N tokens e 1)].
      + intros q Q. destruct (Nat.ltb_spec q (r * c)) as [L|L].
        * replace q with (q / c * c + q mod c)%nat
            by (rewrite Nat.mul_comm; symmetry; apply Nat.div_mod; lia).
          rewrite ROW; [|apply Nat.div_lt_upper_bound; lia|apply Nat.mod_upper_bound; lia].
          assert (0 < sum c (fun t => exp (M (q / c)%nat t)))
            by (apply POS, Nat.div_lt_upper_bound; lia).
          pose proof (exp_pos (- mu (q / c)%nat)). apply Rgt_not_eq.
          now apply Rmult_gt_0_compat.
        * unfold d. rewrite (proj2 (Nat.ltb_ge _ _) L). lra.
    - intros i j I J. simpl in I, J.
      replace (address (row_major (Binary Divide w (IfElse (inside r c) sums (integer 1))) r c) i j)
        with (i * c + j)%nat by (unfold address; simpl; lia).
      assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
      rewrite ROW by assumption. unfold u. rewrite (proj2 (Nat.ltb_lt _ _) L).
      destruct (divmod i j c J) as [-> _]. rewrite FM by assumption.
      unfold Rminus. rewrite exp_plus. specialize (POS i I). pose proof (exp_pos (- mu i)).
      field. split; lra.
  Qed.

  (** The sums by one head for all rows. *)
  Lemma gives_frugal_sums e c w u : (0 < c)%nat -> gives e w u ->
    gives e (Binary Multiply (integer c) (Aggregate (same_row c) w (Integer 0)))
      (fun q => INR c * mean (map u (selected N (in_row c) q))).
  Proof.
    intros C W. apply gives_multiply; [apply (index_constant N tokens e c)|].
    apply gives_aggregate; [now apply selects_same_row|exact W].
  Qed.

  (** The weights of both forms. *)
  Lemma gives_exponentials e r c s f :
    gives e s f ->
    gives e (exponentials r c s) (fun q => if Nat.ltb q (r * c) then exp (f q) else 0).
  Proof.
    intros F. apply gives_if; [apply says_inside|now apply gives_exp|apply (gives_integer N tokens e 0)].
  Qed.
  Lemma gives_safe e r c s f :
    gives e s f -> gives e (safe r c s) (fun q => if Nat.ltb q (r * c) then f q else 0).
  Proof.
    intros F. apply gives_if; [apply says_inside|exact F|apply (gives_integer N tokens e 0)].
  Qed.
  Lemma gives_shifted e r c s f top :
    gives e s f -> gives e (row_maximum r c s) (fun q => top (q / c)%nat) ->
    gives e (exponentials r c (shifted r c s))
      (fun q => if Nat.ltb q (r * c) then exp (f q - top (q / c)%nat) else 0).
  Proof.
    intros F T. eapply gives_ext; [|apply gives_exponentials, gives_if;
      [apply says_inside|apply gives_subtract; [apply gives_safe; exact F|exact T]
      |apply (gives_integer N tokens e 0)]].
    intros q Q. cbv beta. destruct (Nat.ltb q (r * c)); reflexivity.
  Qed.

  Lemma entries_of (m : matrix) (f : nat -> R) (M : nat -> nat -> R) r c :
    m = row_major (source m) r c ->
    (forall i j, (i < rows m)%nat -> (j < columns m)%nat ->
        (address m i j < N)%nat /\ f (address m i j) = M i j) ->
    forall i j, (i < r)%nat -> (j < c)%nat -> f (i * c + j)%nat = M i j.
  Proof.
    intros -> H i j I J. simpl in H. destruct (H i j I J) as [_ E]. rewrite <- E.
    f_equal. unfold address; simpl. lia.
  Qed.

  (** Lemma softmax, for all shapes: plain. *)
  Theorem plain_softmax_correct r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> holds N tokens (row_major s r c) M ->
    holds N tokens (row_major (plain_softmax r c s) r c)
      (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
  Proof.
    intros C RC [f [F H]]. set (u := fun q => if Nat.ltb q (r * c) then exp (f q - 0) else 0).
    assert (W : forall e, gives e (exponentials r c (safe r c s)) u).
    { intros e. eapply gives_ext; [|apply gives_exponentials, gives_safe, F].
      intros q Q. cbv beta. unfold u. rewrite Rminus_0_r.
      destruct (Nat.ltb q (r * c)); reflexivity. }
    eapply (softmax_of_weights r c s M (fun _ => 0) _ _ f _ C RC F); [|exact W| |].
    - now apply (entries_of (row_major s r c)).
    - intros e. apply gives_frugal_sums; [exact C|exact (W e)].
    - intros q L. exact (row_sum r c q u C L RC).
  Qed.

  (** Lemma softmax, for all shapes: with the row maximum subtracted first. *)
  Theorem stable_softmax_correct r c s M :
    (0 < c)%nat -> (r * c <= N)%nat -> holds N tokens (row_major s r c) M ->
    holds N tokens (row_major (stable_softmax r c s) r c)
      (fun i j => exp (M i j) / sum c (fun t => exp (M i t))).
  Proof.
    intros C RC [f [F H]]. destruct (gives_row_maximum r c s f C F) as [top T].
    set (u := fun q => if Nat.ltb q (r * c) then exp (f q - top (q / c)%nat) else 0).
    assert (W : forall e, gives e (exponentials r c (shifted r c s)) u).
    { intros e. now apply gives_shifted. }
    eapply (softmax_of_weights r c s M top _ _ f _ C RC F); [|exact W| |].
    - now apply (entries_of (row_major s r c)).
    - intros e. apply gives_frugal_sums; [exact C|exact (W e)].
    - intros q L. exact (row_sum r c q u C L RC).
  Qed.
End Softmax.
