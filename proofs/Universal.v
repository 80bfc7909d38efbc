(** * Theorem 1: one program simulates every attention of its order, for all orders

    [U n d dv] is a program that depends only on n, d and d_v. The theorem, [U_simulates], holds for
    all n, d, d_v ≥ 1 and all matrices X, A, V that the tokens contain. U has a value, which begins with
    T(X) = softmax(X A Xᵀ) X V:

    run N tokens (U n d dv) = Some y /\ y (i * dv + j) = Num (attention n d x a v i j). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Masks.
Open Scope R_scope.

(** ** The tokens: X (n×d), then A (d×d), then V (d×d_v), row by row *)
Definition block (r c first : nat) : matrix := View Tokens r c (Int first) c 1.
Definition X n d : matrix := block n d 0.
Definition A n d : matrix := block d d (n * d).
Definition V n d dv : matrix := block d dv (n * d + d * d).

(** ** One head: softmax(X A Xᵀ) X V, with fetching products; [h] is the height of the first sum *)
Definition scores (h : nat) (x a : matrix) : sop :=
  source (matmul (S h) (matmul h x a) (transposed x)).
Definition attention_head (h : nat) (kept : sop) (x a v : matrix) : matrix :=
  matmul (S (S h))
    (row_major (softmax true Natural kept (rows x) (scores h x a)) (rows x) (rows x))
    (matmul h x v).

(** ** U: a program that depends only on n, d and d_v *)
Definition U n d dv : sop := source (attention_head 1 (inside n n) (X n d) (A n d) (V n d dv)).

(** Without the row maximum, exponentials are divided by their sums after the product. *)
Definition weighted_mean (h : nat) (w v : matrix) : sop :=
  let t := Family h 0 (columns w) in
  Binary Divide
    (SumOver (product_term t w v) [t])
    (SumOver (entry w (At (row_of (rows w) (columns v))) (At (Head t))) [t]).

Definition plain_U n d dv : sop :=
  weighted_mean 3
    (row_major (Unary Exp (scores 1 (X n d) (A n d))) n n)
    (matmul 1 (X n d) (V n d dv)).

(** ** Attention *)
Definition score d (x a : nat -> nat -> R) i l := dot d (dot d x a) (fun s t => x t s) i l.

Definition attention n d (x a v : nat -> nat -> R) : nat -> nat -> R :=
  dot n (fun i l => exp (score d x a i l) / sum n (fun m => exp (score d x a i m))) (dot d x v).

(** The same attention, in which query i attends to the keys of [keep i]. *)
Definition masked_attention (keep : nat -> nat -> bool) n d (x a v : nat -> nat -> R) :=
  dot n (fun i l => softmax_of Natural (keep i) n (score d x a i) l) (dot d x v).

(** ** Meaning *)

(** The run of a program with a row-major result. *)
Lemma run_of N tokens p r c M : holds N tokens closed (row_major p r c) M ->
  exists y, run N tokens p = Some y /\
    forall i j, (i < r)%nat -> (j < c)%nat -> y (i * c + j)%nat = Num (M i j).
Proof.
  intros H. apply holds_compact in H. destruct H as [_ [f [F H]]].
  destruct (F (fun _ _ => 0%nat) I) as [y [E Y]]. exists y. split; [exact E|].
  intros i j I J. destruct (H i j I J) as [L V0]. rewrite Y by exact L. now rewrite V0.
Qed.

Lemma dot_ext k A B A' B' i j :
  (forall t, (t < k)%nat -> A i t = A' i t) -> (forall t, (t < k)%nat -> B t j = B' t j) ->
  dot k A B i j = dot k A' B' i j.
Proof. intros E F. apply sum_ext. intros t T. now rewrite E, F. Qed.

Section Heads.
  Variable N : nat.
  Variable tokens : nat -> value.
  Variable context : environment -> Prop.
  Notation holds := (holds N tokens context).

  (** The tokens contain a matrix in row-major order. *)
  Definition numbers := exists f, forall q, (q < N)%nat -> tokens q = Num (f q).
  Definition tokens_hold (r c first : nat) (M : nat -> nat -> R) :=
    (first + r * c <= N)%nat /\
    forall i j, (i < r)%nat -> (j < c)%nat -> tokens (first + i * c + j)%nat = Num (M i j).

  Lemma holds_block r c place first M :
    (exists e, context e) -> numbers -> tokens_hold r c first M ->
    (forall e, context e -> index N tokens e (sop_of place) (fun _ => first)) ->
    holds (View Tokens r c place c 1) M.
  Proof.
    intros E0 [f F] [L H] O. split; [exact E0|]. exists f, first. split; [|split; [exact O|]].
    - intros e _. now apply gives_tokens.
    - intros i j I J. simpl in I, J. unfold address; simpl.
      replace (first + i * c + j * 1)%nat with (first + i * c + j)%nat by lia.
      assert (first + i * c + j < N)%nat by nia. split; [assumption|].
      specialize (H i j I J). rewrite F in H by assumption. now injection H.
  Qed.

  Section Head.
    Variables (h n d dv : nat) (mx ma mv : matrix) (x a v : nat -> nat -> R).
    Hypothesis shape_X : rows mx = n /\ columns mx = d.
    Hypothesis shape_A : rows ma = d /\ columns ma = d.
    Hypothesis shape_V : rows mv = d /\ columns mv = dv.
    Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv)%nat.
    Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
    Hypothesis kept_context : keeps context h /\ keeps context (S h) /\ keeps context (S (S h)).
    Hypothesis holds_X : holds mx x.
    Hypothesis holds_A : holds ma a.
    Hypothesis holds_V : holds mv v.

    Lemma holds_scores : holds (row_major (scores h mx ma) n n) (score d x a).
    Proof.
      change (score d x a) with (dot d (dot d x a) (fun s t => x t s)).
      apply product_correct; simpl; try tauto; try lia.
      - change (matmul h mx ma) with (row_major (source (matmul h mx ma)) (rows mx) (columns ma)).
        apply product_correct; simpl; try tauto; nia.
      - now apply transposed_correct.
    Qed.

    Lemma holds_values : holds (row_major (source (matmul h mx mv)) n dv) (dot d x v).
    Proof. apply product_correct; simpl; try tauto; lia. Qed.

    (** One head, with any mask, in any context. *)
    Theorem attention_head_correct kept (w : nat -> nat -> R) :
      holds (row_major (softmax true Natural kept n (scores h mx ma)) n n) w ->
      holds (row_major (source (attention_head h kept mx ma mv)) n dv) (dot n w (dot d x v)).
    Proof.
      intros W. unfold attention_head. rewrite (proj1 shape_X).
      apply product_correct; simpl; try tauto; try lia.
      pose proof holds_values as H. rewrite <- (proj1 shape_X), <- (proj2 shape_V) in H. exact H.
    Qed.

    Theorem plain_head_correct :
      holds (row_major (source (attention_head h (inside n n) mx ma mv)) n dv) (attention n d x a v).
    Proof.
      apply attention_head_correct. apply (stable_softmax_correct N tokens context n n); try tauto; try lia.
      apply holds_scores.
    Qed.
  End Head.
End Heads.

Section Universal.
  Variables (N n d dv : nat) (tokens : nat -> value) (x a v : nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv)%nat.
  (** The sequence is long enough for the intermediate results, and all tokens are numbers. *)
  Hypothesis room : (n * d <= N /\ n * n <= N /\ n * dv <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  (** The tokens contain ⟨T, X⟩: the entries of X, A and V. *)
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_A : tokens_hold N tokens d d (n * d) a.
  Hypothesis tokens_V : tokens_hold N tokens d dv (n * d + d * d) v.

  Lemma closed_block r c first M : tokens_hold N tokens r c first M ->
    holds N tokens closed (block r c first) M.
  Proof.
    intros H. apply (holds_block N tokens closed r c (Int first) first M); auto.
    - now exists (fun _ _ => 0%nat).
    - intros; apply index_int.
  Qed.

  (** *** Theorem 1: U has a value on ⟨T, X⟩, which begins with T(X) = softmax(X A Xᵀ) X V. *)
  Theorem U_simulates :
    exists y, run N tokens (U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (attention n d x a v i j).
  Proof.
    apply run_of.
    apply (plain_head_correct N tokens closed 1 n d dv (X n d) (A n d) (V n d dv) x a v);
      first [now apply closed_block|lia|repeat split; apply closed_keeps|now split].
  Qed.

  Lemma sum_divided k f z : sum k (fun t => f t / z) = sum k f / z.
  Proof. unfold Rdiv. apply sum_scaled. Qed.

  (** The same theorem without the row maximum. *)
  Theorem plain_U_simulates :
    exists y, run N tokens (plain_U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (attention n d x a v i j).
  Proof.
    apply run_of.
    pose proof (holds_scores N tokens closed 1 n d dv (X n d) (A n d) (V n d dv) x a ltac:(now split)
      ltac:(now split) ltac:(now split) ltac:(lia) ltac:(lia) ltac:(repeat split; apply closed_keeps)
      (closed_block _ _ _ _ tokens_X) (closed_block _ _ _ _ tokens_A)) as HS.
    pose proof (holds_values N tokens closed 1 n d dv (X n d) (A n d) (V n d dv) x v ltac:(now split)
      ltac:(now split) ltac:(now split) ltac:(lia) ltac:(lia) ltac:(repeat split; apply closed_keeps)
      (closed_block _ _ _ _ tokens_X) (closed_block _ _ _ _ tokens_V)) as VV.
    pose (w := row_major (Unary Exp (scores 1 (X n d) (A n d))) n n).
    assert (W : holds N tokens closed w (fun i l => exp (score d x a i l))).
    { apply (map_correct N tokens closed (scores 1 (X n d) (A n d)) _ n n _ exp); [|exact HS].
      intros e f _ F. exists (fun q => exp (f q)). split; [now apply gives_exp|reflexivity]. }
    pose proof (matmul_correct N tokens closed 3 w (matmul 1 (X n d) (V n d dv)) _ _
      ltac:(simpl; lia) ltac:(simpl; lia) eq_refl ltac:(simpl; lia) (closed_keeps 3) W VV) as P.
    apply holds_compact in P. destruct P as [E0 [p [P0 P1]]].
    destruct W as [_ [f [o [F [O FW]]]]].
    set (row := fun q => if Nat.ltb q (n * dv) then (q / dv)%nat else 0%nat).
    set (z := fun q => sum n (fun t => f (address w o (row q) t))).
    assert (Z : forall q, z q = sum n (fun m => exp (score d x a (row q) m))).
    { intros q. apply sum_ext. intros t T0. apply FW; simpl; [|exact T0].
      unfold row. apply (row_below n dv q); lia. }
    apply holds_compact. split; [exact E0|]. exists (fun q => p q / z q). split.
    - intros e E. apply gives_divide; [exact (P0 e E)| |].
      + apply (gives_sum N tokens e _ (Family 3 0 n) (fun t q => f (address w o (row q) t))).
        simpl. intros t T0. apply (gives_entry N tokens _ w _ _ o row (fun _ => t)).
        * now apply O.
        * apply index_row. lia.
        * apply index_bound.
        * now apply F.
        * intros q Q. apply FW; simpl; [|exact T0]. unfold row. apply (row_below n dv q); lia.
      + intros q Q. rewrite Z. apply Rgt_not_eq, sum_positive; [lia|]. intros; apply exp_pos.
    - intros i j I J. destruct (P1 i j I J) as [B E]. split; [exact B|].
      assert (R0 : row (i * dv + j)%nat = i).
      { unfold row. rewrite (proj2 (Nat.ltb_lt _ _)) by nia. apply divmod. exact J. }
      rewrite Z, R0. change (rows w) with n in E. change (columns (matmul 1 (X n d) (V n d dv))) with dv in E.
      rewrite E. unfold attention, dot at 1 3. simpl. rewrite <- sum_divided. apply sum_ext. intros l L.
      unfold Rdiv. ring.
  Qed.
End Universal.
