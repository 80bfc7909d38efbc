(** * Theorem 1: one program simulates every attention of its order, for all orders *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax.
Open Scope R_scope.

(** ** The tokens: X (n×d), then A (d×d), then V (d×d_v), row by row *)
Definition X n d : matrix := View Tokens n d 0 d 1.
Definition A n d : matrix := View Tokens d d (n * d) d 1.
Definition V n d dv : matrix := View Tokens d dv (n * d + d * d) dv 1.

(** ** U: a program of n, d and d_v alone *)
Definition scores n d : sop :=
  source (matmul 2 (matmul 1 (X n d) (A n d)) (transposed (X n d))).

Definition U n d dv : sop :=
  source (matmul 3
    (row_major (stable_softmax n n (scores n d)) n n)
    (matmul 1 (X n d) (V n d dv))).

(** Without the row maximum: exponentials are divided by their sums after the product. *)
Definition weighted_mean (h : nat) (w v : matrix) : sop :=
  let t := Family h 0 (columns w) in
  Binary Divide
    (SumOver (product_term t w v) [t])
    (SumOver (entry w (At (row_of (rows w) (columns v))) (At (Head t))) [t]).

Definition plain_U n d dv : sop :=
  weighted_mean 3
    (row_major (Unary Exp (scores n d)) n n)
    (matmul 1 (X n d) (V n d dv)).

(** ** Attention *)
Definition score d (x a : nat -> nat -> R) i l := dot d (dot d x a) (fun s t => x t s) i l.

Definition attention n d (x a v : nat -> nat -> R) : nat -> nat -> R :=
  dot n (fun i l => exp (score d x a i l) / sum n (fun m => exp (score d x a i m))) (dot d x v).

Section Universal.
  Variables (N n d dv : nat) (tokens : nat -> value) (x a v : nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv)%nat.
  (** The sequence has room for the inputs and for the intermediate results. *)
  Hypothesis room : (n * d + d * d + d * dv <= N /\ n * n <= N /\ n * dv <= N)%nat.
  (** The tokens are ⟨T, X⟩: the entries of X, A and V; blanks behind them are numbers, too. *)
  Hypothesis numbers : exists f, forall q, (q < N)%nat -> tokens q = Num (f q).
  Hypothesis tokens_X : forall i j, (i < n)%nat -> (j < d)%nat -> tokens (i * d + j)%nat = Num (x i j).
  Hypothesis tokens_A : forall i j, (i < d)%nat -> (j < d)%nat ->
    tokens (n * d + i * d + j)%nat = Num (a i j).
  Hypothesis tokens_V : forall i j, (i < d)%nat -> (j < dv)%nat ->
    tokens (n * d + d * d + i * dv + j)%nat = Num (v i j).

  Lemma holds_view off r c M : (off + r * c <= N)%nat ->
    (forall i j, (i < r)%nat -> (j < c)%nat -> tokens (off + i * c + j)%nat = Num (M i j)) ->
    holds N tokens (View Tokens r c off c 1) M.
  Proof.
    intros L H. destruct numbers as [f F]. exists f. split.
    - intros e. now apply gives_tokens.
    - intros i j I J. simpl in I, J. unfold address; simpl.
      replace (off + i * c + j * 1)%nat with (off + i * c + j)%nat by lia.
      assert (off + i * c + j < N)%nat by nia. split; [assumption|].
      specialize (H i j I J). rewrite F in H by assumption. now injection H.
  Qed.

  Lemma holds_X : holds N tokens (X n d) x.
  Proof. apply holds_view; [nia|exact tokens_X]. Qed.
  Lemma holds_A : holds N tokens (A n d) a.
  Proof. apply holds_view; [nia|exact tokens_A]. Qed.
  Lemma holds_V : holds N tokens (V n d dv) v.
  Proof. apply holds_view; [nia|exact tokens_V]. Qed.

  Lemma holds_scores : holds N tokens (row_major (scores n d) n n) (score d x a).
  Proof.
    change (row_major (scores n d) n n) with
      (matmul 2 (matmul 1 (X n d) (A n d)) (transposed (X n d))).
    apply matmul_correct; simpl; try lia.
    - apply matmul_correct; simpl; try nia; [exact holds_X|exact holds_A].
    - apply transposed_correct, holds_X.
  Qed.

  Lemma holds_values : holds N tokens (matmul 1 (X n d) (V n d dv)) (dot d x v).
  Proof. apply matmul_correct; simpl; try nia; [exact holds_X|exact holds_V]. Qed.

  (** What a row-major result says about the program's run. *)
  Lemma run_of p r c M : holds N tokens (row_major p r c) M ->
    exists y, run N tokens p = Some y /\
      forall i j, (i < r)%nat -> (j < c)%nat -> y (i * c + j)%nat = Num (M i j).
  Proof.
    intros [f [F H]]. destruct (F (fun _ _ => 0%nat)) as [y [E Y]].
    exists y. split; [exact E|]. intros i j I J. simpl in H.
    destruct (H i j I J) as [L V0]. unfold address in L, V0; simpl in L, V0.
    replace (i * c + j * 1)%nat with (i * c + j)%nat in * by lia.
    rewrite Y by exact L. now rewrite V0.
  Qed.

  (** *** Theorem 1: U has a value on ⟨T, X⟩, and it is T(X) = softmax(X A Xᵀ) X V. *)
  Theorem U_simulates :
    exists y, run N tokens (U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (attention n d x a v i j).
  Proof.
    apply run_of. change (row_major (U n d dv) n dv) with
      (matmul 3 (row_major (stable_softmax n n (scores n d)) n n) (matmul 1 (X n d) (V n d dv))).
    apply matmul_correct; simpl; try nia; [|exact holds_values].
    apply stable_softmax_correct; [lia|lia|exact holds_scores].
  Qed.

  Lemma sum_divided k f z : sum k (fun t => f t / z) = sum k f / z.
  Proof. unfold Rdiv. apply sum_scaled. Qed.

  (** The same without the row maximum. *)
  Theorem plain_U_simulates :
    exists y, run N tokens (plain_U n d dv) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (attention n d x a v i j).
  Proof.
    apply run_of. destruct holds_scores as [s [S0 S1]].
    pose (w := row_major (Unary Exp (scores n d)) n n).
    assert (W : holds N tokens w (fun i l => exp (score d x a i l))).
    { exists (fun q => exp (s q)). split; [intros e; apply gives_exp, S0|].
      intros i l I L. destruct (S1 i l I L) as [B E]. split; [exact B|]. now rewrite <- E. }
    pose proof holds_values as VV.
    destruct (matmul_correct N tokens 3 w (matmul 1 (X n d) (V n d dv)) _ _
      ltac:(simpl; lia) ltac:(simpl; lia) eq_refl ltac:(simpl; lia) W VV) as [p [P0 P1]].
    destruct W as [f [F FW]].
    set (row := fun q => if Nat.ltb q (n * dv) then (q / dv)%nat else 0%nat).
    set (z := fun q => sum n (fun t => f (address w (row q) t))).
    assert (Z : forall q, z q = sum n (fun m => exp (score d x a (row q) m))).
    { intros q. apply sum_ext. intros t T0. apply FW; simpl; [|exact T0].
      unfold row. apply (row_below n dv q); lia. }
    exists (fun q => p q / z q). split.
    - intros e. simpl. apply gives_divide; [exact (P0 e)| |].
      + apply (gives_sum N tokens e _ (Family 3 0 n) (fun t q => f (address w (row q) t))).
        simpl. intros t T0. apply (gives_entry N tokens _ w _ _ row (fun _ => t)); [| |apply F|].
        * apply index_row. lia.
        * eapply index_same; [|apply index_head]. intros q Q. unfold bind; simpl. reflexivity.
        * intros q Q. apply FW; simpl; [|exact T0]. unfold row. apply (row_below n dv q); lia.
      + intros q Q. rewrite Z. apply Rgt_not_eq, sum_positive; [lia|]. intros; apply exp_pos.
    - intros i j I J. simpl in I, J. destruct (P1 i j I J) as [B E]. split; [exact B|].
      assert (R0 : row (address (row_major (plain_U n d dv) n dv) i j) = i).
      { unfold row, address; simpl. replace (i * dv + j * 1)%nat with (i * dv + j)%nat by lia.
        rewrite (proj2 (Nat.ltb_lt _ _)) by nia. apply divmod. exact J. }
      rewrite Z, R0. unfold attention, dot at 1.
      transitivity (p (address (matmul 3 w (matmul 1 (X n d) (V n d dv))) i j)
                    / sum n (fun m => exp (score d x a i m))); [reflexivity|].
      rewrite E. simpl. unfold dot at 1. rewrite <- sum_divided. apply sum_ext. intros l L.
      unfold Rdiv. ring.
  Qed.
End Universal.
