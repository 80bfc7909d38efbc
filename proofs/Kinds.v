(** * Linear attention, Linformer and Performer: U for each kind, for all orders

    The theorems are [linear_U_simulates], [elu_U_simulates] (linear attention with the feature map
    elu + 1), [linformer_U_simulates] and [performer_U_simulates] (the features are random, so ω is a
    matrix of T). The programs depend only on the sizes and, for Performer, on two constants. The value
    of each program on ⟨T, X⟩ begins with T(X). *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Lines Universal Heads Tiled.
From Locum Require Import Norm Activations.
Open Scope R_scope.

(** ** Programs: X, then W_Q and W_K (d×w), then V; Linformer: E and F (k×n); Performer: ω (k×w) *)

Definition W_Q n d w : matrix := block d w (n * d).
Definition W_K n d w : matrix := block d w (n * d + d * w).
Definition V_behind n d w dv : matrix := block d dv (n * d + d * w + d * w).

Definition linear_U n d dv w : sop :=
  source (matmul 3
    (matmul 2 (matmul 1 (X n d) (W_Q n d w)) (transposed (matmul 1 (X n d) (W_K n d w))))
    (matmul 1 (X n d) (V_behind n d w dv))).

(** Each row divided by its sum. *)
Definition normalised (r c : nat) (s : sop) : sop :=
  Binary Divide s (IfElse (inside r c) (row_sums r c s) (integer 1)).

Definition featured_U (h n dv k : nat) (queries keys : sop) (v : matrix) : sop :=
  let scores := source (matmul h (row_major queries n k) (transposed (row_major keys n k))) in
  source (matmul (S h) (row_major (normalised n n scores) n n) (matmul 1 (X n (rows v)) v)).

Definition elu_U n d dv w : sop :=
  let feature (m : matrix) := activated EluPlusOne n w (source (matmul 1 (X n d) m)) in
  featured_U 2 n dv w (feature (W_Q n d w)) (feature (W_K n d w)) (V_behind n d w dv).

Definition linformer_U n d dv w k : sop :=
  let first := (n * d + d * w + d * w + d * dv)%nat in
  let keys := matmul 2 (matmul 1 (block k n first) (X n d)) (W_K n d w) in
  let scores := source (matmul 3 (matmul 1 (X n d) (W_Q n d w)) (transposed keys)) in
  source (matmul 4 (row_major (stable_softmax n k scores) n k)
    (matmul 2 (matmul 1 (block k n (first + k * n)) (X n d)) (V_behind n d w dv))).

(** φ(z) = root · exp(ωz − ½|z|²); root and ½ are numbers of the program. *)
Definition feature (half root : atom) (n w k : nat) (omega z : matrix) : sop :=
  let y := source z in
  let projected := source (matmul 2 (row_major y n w) (transposed omega)) in
  let squares := entry (row_major (row_sums n w (Binary Multiply y y)) n w) (At (row_index k)) (Int 0) in
  Binary Multiply (Constant root)
    (Unary Exp (IfElse (inside n k) (Binary Subtract projected (Binary Multiply (Constant half) squares))
                  (integer 0))).
Definition performer_U (half root : atom) n d dv w k : sop :=
  let omega := block k w (n * d + d * w + d * w + d * dv) in
  featured_U 3 n dv k
    (feature half root n w k omega (matmul 1 (X n d) (W_Q n d w)))
    (feature half root n w k omega (matmul 1 (X n d) (W_K n d w))) (V_behind n d w dv).

(** ** Meaning *)

(** Attention with features: weights φ(q)·φ(k), divided by the sum of their row. *)
Definition featured n k (q key : nat -> nat -> R) (values : nat -> nat -> R) : nat -> nat -> R :=
  let s := dot k q (fun t l => key l t) in
  dot n (fun i l => s i l / sum n (s i)) values.
Definition performer_feature (half root : R) w (omega z : nat -> nat -> R) (i t : nat) : R :=
  root * exp (dot w z (fun j t => omega t j) i t - half * sum w (fun j => z i j * z i j)).

Section Kinds.
  Variables (N n d dv w : nat) (tokens : nat -> value) (x wq wk v : nat -> nat -> R).
  Notation holds := (holds N tokens closed).
  Notation gives := (gives N tokens).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < dv /\ 0 < w)%nat.
  Hypothesis room : (n * d <= N /\ n * dv <= N /\ n * w <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_Q : tokens_hold N tokens d w (n * d) wq.
  Hypothesis tokens_K : tokens_hold N tokens d w (n * d + d * w) wk.
  Hypothesis tokens_V : tokens_hold N tokens d dv (n * d + d * w + d * w) v.

  Let HX := closed_block N tokens blanks _ _ _ _ tokens_X.
  Let HQ := closed_block N tokens blanks _ _ _ _ tokens_Q.
  Let HK := closed_block N tokens blanks _ _ _ _ tokens_K.
  Let HV := closed_block N tokens blanks _ _ _ _ tokens_V.

  Lemma closed_product h a b A B r k c :
    rows a = r -> columns a = k -> rows b = k -> columns b = c ->
    (0 < r)%nat -> (0 < c)%nat -> (r * c <= N)%nat -> holds a A -> holds b B ->
    holds (row_major (source (matmul h a b)) r c) (dot k A B).
  Proof. intros. apply product_correct; auto. apply closed_keeps. Qed.

  Lemma holds_queries : holds (row_major (source (matmul 1 (X n d) (W_Q n d w))) n w) (dot d x wq).
  Proof. apply closed_product; simpl; auto; lia. Qed.
  Lemma holds_keys : holds (row_major (source (matmul 1 (X n d) (W_K n d w))) n w) (dot d x wk).
  Proof. apply closed_product; simpl; auto; lia. Qed.
  Lemma holds_values : holds (row_major (source (matmul 1 (X n d) (V_behind n d w dv))) n dv) (dot d x v).
  Proof. apply closed_product; simpl; auto; lia. Qed.

  (** *** Linear attention: (X W_Q)(X W_K)ᵀ X V *)
  Theorem linear_U_simulates : (n * n <= N)%nat ->
    exists y, run N tokens (linear_U n d dv w) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat -> y (i * dv + j)%nat =
        Num (dot n (dot w (dot d x wq) (fun t l => dot d x wk l t)) (dot d x v) i j).
  Proof.
    intros NN. apply run_of. apply closed_product; simpl; auto; try lia; [|exact holds_values].
    apply closed_product; simpl; auto; try lia; [exact holds_queries|].
    exact (transposed_correct N tokens closed _ _ holds_keys).
  Qed.

  (** Rows whose sum is not 0, normalised to the sum 1. *)
  Lemma normalised_correct r c s M : (0 < c)%nat -> (r * c <= N)%nat ->
    (forall i, (i < r)%nat -> sum c (M i) <> 0) ->
    holds (row_major s r c) M ->
    holds (row_major (normalised r c s) r c) (fun i j => M i j / sum c (M i)).
  Proof.
    intros C RC NZ H. pose proof (row_sums_correct N tokens closed r c s M C RC H) as S.
    apply holds_compact in H, S. destruct H as [E0 [f [F H]]], S as [_ [g [G S]]].
    apply holds_compact. split; [exact E0|].
    exists (fun q => f q / (if Nat.ltb q (r * c) then g q else 1)). split.
    - intros e E. apply gives_divide; [now apply F| |].
      + apply gives_if; [apply says_inside|now apply G|apply (gives_integer N tokens e 1)].
      + intros q Q. destruct (Nat.ltb_spec q (r * c)) as [L|L]; [|lra].
        assert (I : (q / c < r)%nat) by (apply Nat.div_lt_upper_bound; lia).
        destruct (S (q / c)%nat (q mod c)%nat I ltac:(apply Nat.mod_upper_bound; lia)) as [_ V].
        replace (q / c * c + q mod c)%nat with q in V
          by (rewrite Nat.mul_comm; apply Nat.div_mod; lia).
        rewrite V. now apply NZ.
    - intros i j I J. destruct (H i j I J) as [L V], (S i j I J) as [_ V']. split; [exact L|].
      rewrite (proj2 (Nat.ltb_lt _ _)) by nia. now rewrite V, V'.
  Qed.

  Lemma featured_correct h k queries keys Q K :
    (0 < k)%nat -> (n * n <= N)%nat -> (n * k <= N)%nat ->
    (forall i t, (i < n)%nat -> (t < k)%nat -> 0 < Q i t /\ 0 < K i t) ->
    holds (row_major queries n k) Q -> holds (row_major keys n k) K ->
    holds (row_major (featured_U h n dv k queries keys (V_behind n d w dv)) n dv)
      (featured n k Q K (dot d x v)).
  Proof.
    intros K0 NN RK POS HQ' HK'. unfold featured_U, featured. simpl rows.
    apply closed_product; simpl; auto; try lia; [|exact holds_values].
    apply normalised_correct; try lia.
    - intros i I. apply Rgt_not_eq. apply sum_positive_below; [lia|].
      intros l L. apply sum_positive_below; [lia|].
      intros t T. destruct (POS i t I T), (POS l t L T). now apply Rmult_lt_0_compat.
    - apply closed_product; simpl; auto; try lia.
      exact (transposed_correct N tokens closed _ _ HK').
  Qed.

  (** *** Linear attention with the feature map elu + 1 *)
  Theorem elu_U_simulates : (n * n <= N)%nat ->
    exists y, run N tokens (elu_U n d dv w) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat -> y (i * dv + j)%nat =
        Num (featured n w (fun i t => activation EluPlusOne (dot d x wq i t))
               (fun i t => activation EluPlusOne (dot d x wk i t)) (dot d x v) i j).
  Proof.
    intros NN. assert (POS : forall r, 0 < activation EluPlusOne r)
      by (intros r; simpl; destruct (Rgt_dec r 0); [lra|apply exp_pos]).
    apply run_of, featured_correct; auto; try lia.
    - apply (activation_correct N tokens closed EluPlusOne n w); [exact I|exact holds_queries].
    - apply (activation_correct N tokens closed EluPlusOne n w); [exact I|exact holds_keys].
  Qed.

  (** *** Linformer: softmax((X W_Q)(E X W_K)ᵀ) F X V *)
  Theorem linformer_U_simulates k ee ff :
    let first := (n * d + d * w + d * w + d * dv)%nat in
    (0 < k)%nat -> (k * d <= N)%nat -> (k * w <= N)%nat -> (k * dv <= N)%nat -> (n * k <= N)%nat ->
    tokens_hold N tokens k n first ee -> tokens_hold N tokens k n (first + k * n) ff ->
    exists y, run N tokens (linformer_U n d dv w k) = Some y /\
      forall i j, (i < n)%nat -> (j < dv)%nat -> y (i * dv + j)%nat =
        let s := dot w (dot d x wq) (fun t l => dot d (dot n ee x) wk l t) in
        Num (dot k (fun i l => exp (s i l) / sum k (fun t => exp (s i t))) (dot d (dot n ff x) v) i j).
  Proof.
    intros first K0 KD KW KV NK TE TF.
    pose proof (closed_block N tokens blanks _ _ _ _ TE) as HE.
    pose proof (closed_block N tokens blanks _ _ _ _ TF) as HF.
    set (s := dot w (dot d x wq) (fun t l => dot d (dot n ee x) wk l t)).
    apply run_of. apply closed_product; simpl; auto; try lia.
    - apply (stable_softmax_correct N tokens closed n k _ s); try lia.
      apply closed_product; simpl; auto; try lia; [exact holds_queries|].
      apply (transposed_correct N tokens closed (matmul 2 (matmul 1 (block k n first) (X n d)) (W_K n d w))).
      apply closed_product; simpl; auto; try lia. apply closed_product; simpl; auto; lia.
    - apply closed_product; simpl; auto; try lia. apply closed_product; simpl; auto; lia.
  Qed.

  (** The features of the Performer, of any n×w matrix. *)
  Lemma feature_correct half root k omega mo z Z :
    is_number (value_of half) = true ->
    is_number (value_of root) = true -> (0 < k)%nat -> (n * k <= N)%nat ->
    rows mo = k -> columns mo = w -> holds mo omega -> holds (row_major (source z) n w) Z ->
    holds (row_major (feature half root n w k mo z) n k)
      (performer_feature (real half) (real root) w omega Z).
  Proof.
    intros NH NR K0 NK RO CO HO HY. set (y := source z).
    pose proof (row_sums_correct N tokens closed n w _ _ ltac:(lia) ltac:(lia)
      (multiply_correct N tokens closed y y n w _ _ HY HY)) as HS.
    assert (HP : holds (row_major (source (matmul 2 (row_major y n w) (transposed mo))) n k)
      (dot w Z (fun j t => omega t j))).
    { apply closed_product; simpl; auto; try lia. now apply transposed_correct. }
    destruct HS as [_ [g [o [G [O S]]]]]. apply holds_compact in HP. destruct HP as [E0 [f [F P]]].
    set (rs := row_major (row_sums n w (Binary Multiply y y)) n w) in *.
    set (sq := fun q => if Nat.ltb (address rs o (q / k) 0) N then g (address rs o (q / k) 0) else 0).
    apply holds_compact. split; [exact E0|].
    exists (fun q => real root * exp (if Nat.ltb q (n * k) then f q - real half * sq q else 0)). split.
    - intros e E. apply gives_multiply; [now apply gives_atom|]. apply gives_exp, gives_if;
        [apply says_inside| |apply (gives_integer N tokens e 0)].
      apply gives_subtract; [now apply F|]. apply gives_multiply; [now apply gives_atom|].
      apply (gives_entry_or N tokens e _ _ _ o (fun q => q / k)%nat (fun _ => 0)%nat g);
        [now apply O|now apply index_row_index|apply index_int|now apply G].
    - intros i t I T. destruct (P i t I T) as [L V]. split; [exact L|].
      rewrite (proj2 (Nat.ltb_lt (i * k + t) (n * k))) by nia. rewrite V. unfold performer_feature, sq.
      destruct (divmod i t k T) as [-> _]. destruct (S i 0%nat I ltac:(simpl; lia)) as [L' V'].
      now rewrite (proj2 (Nat.ltb_lt _ _) L'), V'.
  Qed.

  (** *** Performer: φ(X W_Q) φ(X W_K)ᵀ X V, where the rows of weights are normalised to the sum 1 *)
  Theorem performer_U_simulates half root k omega :
    is_number (value_of half) = true ->
    is_number (value_of root) = true -> 0 < real root -> (0 < k)%nat -> (n * n <= N)%nat -> (n * k <= N)%nat ->
    tokens_hold N tokens k w (n * d + d * w + d * w + d * dv) omega ->
    exists y, run N tokens (performer_U half root n d dv w k) = Some y /\
      let phi := performer_feature (real half) (real root) w omega in
      forall i j, (i < n)%nat -> (j < dv)%nat ->
        y (i * dv + j)%nat = Num (featured n k (phi (dot d x wq)) (phi (dot d x wk)) (dot d x v) i j).
  Proof.
    intros NH NR POS K0 NN NK TO.
    pose proof (closed_block N tokens blanks _ _ _ _ TO) as HO.
    apply (run_of N tokens (performer_U half root n d dv w k) n dv). apply featured_correct; auto.
    - intros i t I T. unfold performer_feature.
      split; (apply Rmult_lt_0_compat; [exact POS|apply exp_pos]).
    - apply feature_correct; auto. exact holds_queries.
    - apply feature_correct; auto. exact holds_keys.
  Qed.
End Kinds.
