(** * Layer norm of each row with ε > 0, for all shapes

    The theorem, [layer_norm_correct], is about entry (i, j) of [layer_norm]. The entry is (Mᵢⱼ − mean
    of row i) / √(variance of row i + ε) · gainⱼ + biasⱼ ([normed] below). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums.
Open Scope R_scope.

(** ** Program *)

Definition deviation (r c : nat) (s : sop) : sop :=
  IfElse (inside r c) (Binary Subtract s (row_means r c s)) (integer 0).
Definition standardised (r c : nat) (epsilon s : sop) : sop :=
  let d := deviation r c s in
  let variance := row_means r c (Binary Multiply d d) in
  Binary Divide d
    (IfElse (inside r c) (Unary Sqrt (Binary Add variance epsilon)) (integer 1)).

(** Gain and bias are 1×c matrices, or absent. *)
Definition along (c : nat) (m : matrix) : sop := entry m (Int 0) (At (column_index c)).
Definition layer_norm (r c : nat) (epsilon : sop) (gain bias : option matrix) (s : sop) : sop :=
  let x := standardised r c epsilon s in
  let y := match gain with Some m => Binary Multiply x (along c m) | None => x end in
  let z := match bias with Some m => Binary Add y (along c m) | None => y end in
  IfElse (inside r c) z (integer 0).

(** ** Meaning *)

Definition row_mean (c : nat) (row : nat -> R) : R := sum c row / INR c.
Definition row_variance (c : nat) (row : nat -> R) : R :=
  row_mean c (fun t => (row t - row_mean c row) * (row t - row_mean c row)).
Definition normed (c : nat) (epsilon : R) (gain bias : nat -> R) (row : nat -> R) (j : nat) : R :=
  (row j - row_mean c row) / sqrt (row_variance c row + epsilon) * gain j + bias j.

Lemma sum_nonnegative n f : (forall k, (k < n)%nat -> 0 <= f k) -> 0 <= sum n f.
Proof.
  induction n; intros H; simpl; [lra|]. pose proof (H n ltac:(lia)).
  assert (0 <= sum n f) by (apply IHn; auto with arith). lra.
Qed.

Section Norm.
  Variable N : nat.
  Variable tokens : nat -> value.
  Notation gives := (gives N tokens).
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).
  Variables (r c : nat) (epsilon : sop) (eps : R).
  Hypothesis columns_exist : (0 < c)%nat.
  Hypothesis room : (r * c <= N)%nat.
  Hypothesis positive : 0 < eps.
  Hypothesis gives_epsilon : forall e, context e -> gives e epsilon (fun _ => eps).

  Definition within (f : nat -> R) (q : nat) : R := if Nat.ltb q (r * c) then f q else 0.
  Definition mean_at (f : nat -> R) : nat -> R :=
    within (fun q => row_mean c (fun t => f (q / c * c + t)%nat)).

  Lemma gives_row_means e s f : gives e s f -> gives e (row_means r c s) (mean_at f).
  Proof.
    intros F. eapply gives_ext; [|apply gives_if; [apply says_inside|apply gives_aggregate;
      [now apply selects_same_row|apply gives_inside_or; exact F]|apply (gives_integer N tokens e 0)]].
    intros q Q. cbv beta. unfold mean_at, within.
    destruct (Nat.ltb_spec q (r * c)) as [L|L]; [|reflexivity].
    set (g := fun q => if Nat.ltb q (r * c) then f q else 0).
    assert (INR c <> 0) by (apply not_0_INR; lia).
    apply Rmult_eq_reg_l with (INR c); [|assumption].
    rewrite (row_sum N r c q g columns_exist L room). unfold row_mean.
    transitivity (sum c (fun t => f (q / c * c + t)%nat)); [|field; assumption].
    apply sum_ext. intros t T. unfold g.
    assert (q / c < r)%nat by (apply Nat.div_lt_upper_bound; lia).
    now rewrite (proj2 (Nat.ltb_lt (q / c * c + t) (r * c))) by nia.
  Qed.

  Definition deviation_at (f : nat -> R) : nat -> R := within (fun q => f q - mean_at f q).
  Definition variance_at (f : nat -> R) : nat -> R :=
    mean_at (fun q => deviation_at f q * deviation_at f q).

  Lemma variance_nonnegative f q : 0 <= variance_at f q.
  Proof.
    unfold variance_at, mean_at, within. destruct (Nat.ltb q (r * c)); [|lra].
    unfold row_mean, Rdiv. apply Rmult_le_pos.
    - apply sum_nonnegative. intros; apply Rle_0_sqr.
    - left. apply Rinv_0_lt_compat, lt_0_INR. lia.
  Qed.

  Lemma gives_deviation e s f : gives e s f -> gives e (deviation r c s) (deviation_at f).
  Proof.
    intros F. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
    apply gives_subtract; [exact F|now apply gives_row_means].
  Qed.

  Lemma gives_sqrt e a f : gives e a f -> (forall q, (q < N)%nat -> 0 <= f q) ->
    gives e (Unary Sqrt a) (fun q => sqrt (f q)).
  Proof.
    intros A P. apply (gives_unary N tokens e Sqrt a f); [exact A|].
    intros q Q. unfold apply1, number. destruct (Rle_dec 0 (f q)) as [_|n]; [reflexivity|].
    exfalso. now apply n, P.
  Qed.

  Lemma gives_standardised e s f : context e -> gives e s f ->
    gives e (standardised r c epsilon s)
      (fun q => deviation_at f q / (if Nat.ltb q (r * c) then sqrt (variance_at f q + eps) else 1)).
  Proof.
    intros E F. pose proof (gives_deviation e s f F) as D.
    apply gives_divide; [exact D| |].
    - apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 1)].
      apply gives_sqrt.
      + apply gives_add; [|now apply gives_epsilon].
        apply gives_row_means, gives_multiply; exact D.
      + intros q _. pose proof (variance_nonnegative f q). lra.
    - intros q _. destruct (Nat.ltb q (r * c)); [|lra]. apply Rgt_not_eq, sqrt_lt_R0.
      pose proof (variance_nonnegative f q). lra.
  Qed.

  (** Gains and biases, and their values if they are absent. *)
  Definition row_or (m : option matrix) (default : R) (g : nat -> R) : Prop :=
    match m with
    | Some m => rows m = 1%nat /\ columns m = c /\ holds m (fun _ j => g j)
    | None => forall j, g j = default
    end.

  Lemma gives_along m g : rows m = 1%nat -> columns m = c -> holds m (fun _ j => g j) ->
    forall e, context e -> gives e (along c m) (fun q => g (q mod c)%nat).
  Proof.
    intros ONE C [_ [f [o [F [O H]]]]] e E.
    assert (B : forall q, (q mod c < columns m)%nat) by (intros; rewrite C; apply Nat.mod_upper_bound; lia).
    eapply gives_ext; [|apply (gives_entry N tokens e m _ _ o (fun _ => 0)%nat (fun q => q mod c)%nat f)].
    - intros q Q. cbv beta. apply H; [lia|apply B].
    - now apply O.
    - apply index_int.
    - apply index_modulo; [apply gives_indices|apply index_constant|auto].
    - now apply F.
    - intros q Q. apply H; [lia|apply B].
  Qed.

  Theorem layer_norm_correct gain bias g b s M :
    row_or gain 1 g -> row_or bias 0 b ->
    holds (row_major s r c) M ->
    holds (row_major (layer_norm r c epsilon gain bias s) r c)
      (fun i j => normed c eps g b (M i) j).
  Proof.
    intros GAIN BIAS H. apply holds_compact in H. destruct H as [E0 [f [F H]]].
    set (x := fun q => deviation_at f q / (if Nat.ltb q (r * c) then sqrt (variance_at f q + eps) else 1)).
    set (z := fun q => x q * g (q mod c)%nat + b (q mod c)%nat).
    apply holds_compact. split; [exact E0|]. exists (within z). split.
    - intros e E. apply gives_if; [apply says_inside| |apply (gives_integer N tokens e 0)].
      pose proof (gives_standardised e s f E (F e E)) as GX. fold x in GX.
      assert (GY : gives e (match gain with
          Some m => Binary Multiply (standardised r c epsilon s) (along c m)
        | None => standardised r c epsilon s end) (fun q => x q * g (q mod c)%nat)).
      { destruct gain as [m|].
        - destruct GAIN as [ONE [C HG]]. apply gives_multiply; [exact GX|now apply gives_along].
        - eapply gives_ext; [|exact GX]. intros q Q. cbv beta. rewrite GAIN. lra. }
      destruct bias as [m|].
      + destruct BIAS as [ONE [C HB]]. apply gives_add; [exact GY|now apply gives_along].
      + eapply gives_ext; [|exact GY]. intros q Q. unfold z. rewrite BIAS. lra.
    - intros i j I J. assert (L : (i * c + j < r * c)%nat) by nia. split; [lia|].
      assert (ROW : forall t, (t < c)%nat -> f (i * c + t)%nat = M i t) by (intros; now apply H).
      assert (MEAN : forall t, (t < c)%nat -> mean_at f (i * c + t)%nat = row_mean c (M i)).
      { intros t T. unfold mean_at, within. rewrite (proj2 (Nat.ltb_lt _ _)) by nia.
        destruct (divmod i t c T) as [-> _]. unfold row_mean. f_equal. now apply sum_ext. }
      assert (DEV : forall t, (t < c)%nat -> deviation_at f (i * c + t)%nat = M i t - row_mean c (M i)).
      { intros t T. unfold deviation_at, within. rewrite (proj2 (Nat.ltb_lt _ _)) by nia.
        now rewrite ROW, MEAN. }
      assert (VAR : variance_at f (i * c + j)%nat = row_variance c (M i)).
      { unfold variance_at, mean_at, within. rewrite (proj2 (Nat.ltb_lt _ _) L).
        destruct (divmod i j c J) as [-> _]. unfold row_variance. unfold row_mean at 1 2. f_equal.
        apply sum_ext. intros t T. now rewrite DEV. }
      unfold within, z, x. rewrite (proj2 (Nat.ltb_lt _ _) L), VAR, DEV by exact J.
      now destruct (divmod i j c J) as [_ ->].
  Qed.
End Norm.
