(** * The corollary on encoders: one program for every encoder layer of its order, for all orders

    [encoder n d d1 d2] is the paper's FFN(X + softmax(X A Xᵀ) X V), without norms and biases.
    [encoder_of_heads] is the same with H heads and W_O. [encoder_layer] has biases, norms (after or
    before each sublayer), residual sums around both sublayers, and any attention. The theorems are
    [encoder_simulates], [encoder_of_heads_simulates] (Corollary H heads), and [encoder_layer_correct]
    with its cases [layer_of_one_head_simulates] and [layer_of_heads_simulates]. *)

From Coq Require Import Reals Lra Lia List Bool Arith ZArith.
Import ListNotations.
From Locum Require Import Rasp Reasoning Matrices Softmax Sums Products Masks Universal Heads Norm Activations.
Open Scope R_scope.

(** ** Programs *)

(** y W + b, at every entry. *)
Definition affine (h : nat) (y w : matrix) (b : option matrix) : sop :=
  let p := source (matmul h y w) in
  match b with Some b => residual p (source (broadcast_row b (rows y))) | None => p end.

Definition feed_forward (h : nat) (act : activation_name) (y w1 w2 : matrix) (b1 b2 : option matrix) : sop :=
  let n := rows y in
  let d1 := columns w1 in
  affine (S h) (row_major (activated act n d1 (affine h y w1 b1)) n d1) w2 b2.

(** The paper's encoder around any attention: W1 (d×d₁) and W2 (d₁×d₂) follow from position [first] on. *)
Definition plain_encoder (h n d d1 d2 first : nat) (attended : sop) : sop :=
  feed_forward h Relu (row_major (residual Tokens attended) n d)
    (block d d1 first) (block d1 d2 (first + d * d1)) None None.

(** One head: X, A, V, then W1 and W2. *)
Definition one_attention (d first : nat) (x : matrix) : sop :=
  source (attention_head 1 (inside (rows x) (rows x)) x (block d d first) (block d d (first + d * d))).
Definition encoder n d d1 d2 : sop :=
  plain_encoder 4 n d d1 d2 (n * d + d * d + d * d) (one_attention d (n * d) (X n d)).

(** H heads: X, the A of all heads, their V, their W_O (d_v×d), then W1 and W2. *)
Definition encoder_of_heads n d dv d1 d2 H : sop :=
  plain_encoder 6 n d d1 d2 (n * d + H * (d * d) + H * (d * dv) + H * (dv * d))
    (projected H (X n d) (n * d) dv d).

(** A layer with biases and norms. The tokens from position [first] on are W1, b1, W2, b2, the gain and
    the bias of each norm, and ε. *)
Inductive norm := Post | Pre.

Definition encoder_layer (where_ : norm) (act : activation_name) (attend : matrix -> sop)
    (h n d d1 first : nat) : sop :=
  let w1 := block d d1 first in
  let b1 := block 1 d1 (first + d * d1) in
  let w2 := block d1 d (first + d * d1 + d1) in
  let b2 := block 1 d (first + d * d1 + d1 + d1 * d) in
  let last := (first + d * d1 + d1 + d1 * d + d)%nat in
  let epsilon := entry (block 1 1 (last + 4 * d)) (Int 0) (Int 0) in
  let norm1 := layer_norm n d epsilon (Some (block 1 d last)) (Some (block 1 d (last + d))) in
  let norm2 := layer_norm n d epsilon (Some (block 1 d (last + 2 * d))) (Some (block 1 d (last + 3 * d))) in
  match where_ with
  | Post =>
      let y := norm1 (residual Tokens (attend (X n d))) in
      norm2 (residual y (feed_forward h act (row_major y n d) w1 w2 (Some b1) (Some b2)))
  | Pre =>
      let y := residual Tokens (attend (row_major (norm1 Tokens) n d)) in
      residual y (feed_forward h act (row_major (norm2 y) n d) w1 w2 (Some b1) (Some b2))
  end.

(** One head (d_v = d), and H heads through W_O. *)
Definition layer_of_one_head where_ act n d d1 : sop :=
  encoder_layer where_ act (one_attention d (n * d)) 4 n d d1 (n * d + d * d + d * d).
Definition layer_of_heads where_ act n d dv d1 H : sop :=
  encoder_layer where_ act (fun x => projected H x (n * d) dv d) 6 n d d1
    (n * d + H * (d * d) + H * (d * dv) + H * (dv * d)).

(** ** Meaning *)

Definition ffn act d d1 (w1 w2 : nat -> nat -> R) (b1 b2 : nat -> R) (y : nat -> nat -> R) i j : R :=
  dot d1 (fun i t => activation act (dot d y w1 i t + b1 t)) w2 i j + b2 j.

Definition layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2
    (T : (nat -> nat -> R) -> nat -> nat -> R) (x : nat -> nat -> R) : nat -> nat -> R :=
  let norm1 y := fun i j => normed d eps g1 c1 (y i) j in
  let norm2 y := fun i j => normed d eps g2 c2 (y i) j in
  match where_ with
  | Post =>
      let y := norm1 (fun i j => x i j + T x i j) in
      norm2 (fun i j => y i j + ffn act d d1 w1 w2 b1 b2 y i j)
  | Pre =>
      let y := fun i j => x i j + T (norm1 x) i j in
      fun i j => y i j + ffn act d d1 w1 w2 b1 b2 (norm2 y) i j
  end.

Section Parts.
  Variables (N n d : nat) (tokens : nat -> value).
  Notation holds := (holds N tokens closed).
  Hypothesis sizes : (0 < n /\ 0 < d)%nat.

  Definition bias_or_none (m : option matrix) (c : nat) (b : nat -> R) : Prop :=
    match m with
    | Some m => rows m = 1%nat /\ columns m = c /\ holds m (fun _ j => b j)
    | None => forall j, b j = 0
    end.

  Lemma affine_correct h y w b Y W B r k c :
    rows y = r -> columns y = k -> rows w = k -> columns w = c ->
    (0 < r)%nat -> (0 < c)%nat -> (r * c <= N)%nat -> bias_or_none b c B ->
    holds y Y -> holds w W ->
    holds (row_major (affine h y w b) r c) (fun i j => dot k Y W i j + B j).
  Proof.
    intros ER EK EK' EC R0 C0 RC HB HY HW.
    pose proof (product_correct N tokens closed h y w Y W r k c ER EK EK' EC R0 C0 RC
      (closed_keeps h) HY HW) as P.
    unfold affine. destruct b as [m|]; simpl in HB.
    - destruct HB as [ONE [CM HB]]. apply add_correct; [exact P|]. rewrite ER.
      replace (row_major (source (broadcast_row m r)) r c) with (broadcast_row m r)
        by (unfold broadcast_row, row_major; simpl; now rewrite CM).
      apply (broadcast_row_correct N tokens closed m r (fun _ j => B j)); auto; rewrite CM; auto.
    - eapply holds_ext; [|exact P]. intros i j I J. cbv beta. rewrite HB. lra.
  Qed.

  Lemma feed_forward_correct h act y w1 w2 b1 b2 Y W1 W2 B1 B2 d1 d2 :
    sound act -> rows y = n -> columns y = d -> rows w1 = d -> columns w1 = d1 ->
    rows w2 = d1 -> columns w2 = d2 -> (0 < d1 /\ 0 < d2)%nat -> (n * d1 <= N /\ n * d2 <= N)%nat ->
    bias_or_none b1 d1 B1 -> bias_or_none b2 d2 B2 ->
    holds y Y -> holds w1 W1 -> holds w2 W2 ->
    holds (row_major (feed_forward h act y w1 w2 b1 b2) n d2) (ffn act d d1 W1 W2 B1 B2 Y).
  Proof.
    intros A EN ED R1 C1 R2 C2 P RM HB1 HB2 HY HW1 HW2. unfold feed_forward, ffn. rewrite EN, C1.
    apply (affine_correct (S h) _ w2 b2 (fun i t => activation act (dot d Y W1 i t + B1 t)) W2 B2 n d1 d2);
      simpl; auto; try lia.
    apply (activation_correct N tokens closed act n d1 _ (fun i t => dot d Y W1 i t + B1 t)); auto.
    apply (affine_correct h y w1 b1); auto; lia.
  Qed.
End Parts.

Section Layer.
  Variables (N n d d1 first h : nat) (tokens : nat -> value) (act : activation_name).
  Variables (attend : matrix -> sop) (T : (nat -> nat -> R) -> nat -> nat -> R).
  Variables (x w1 w2 : nat -> nat -> R) (b1 b2 g1 c1 g2 c2 : nat -> R) (eps : R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < d1)%nat.
  Hypothesis room : (n * d <= N /\ n * d1 <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis known : sound act.
  Hypothesis positive : 0 < eps.
  (** The attention computes T of every n×d matrix. *)
  Hypothesis attends : forall m M, rows m = n -> columns m = d -> holds N tokens closed m M ->
    holds N tokens closed (row_major (attend m) n d) (T M).
  Let last := (first + d * d1 + d1 + d1 * d + d)%nat.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis tokens_W1 : tokens_hold N tokens d d1 first w1.
  Hypothesis tokens_b1 : tokens_hold N tokens 1 d1 (first + d * d1) (fun _ j => b1 j).
  Hypothesis tokens_W2 : tokens_hold N tokens d1 d (first + d * d1 + d1) w2.
  Hypothesis tokens_b2 : tokens_hold N tokens 1 d (first + d * d1 + d1 + d1 * d) (fun _ j => b2 j).
  Hypothesis tokens_g1 : tokens_hold N tokens 1 d last (fun _ j => g1 j).
  Hypothesis tokens_c1 : tokens_hold N tokens 1 d (last + d) (fun _ j => c1 j).
  Hypothesis tokens_g2 : tokens_hold N tokens 1 d (last + 2 * d) (fun _ j => g2 j).
  Hypothesis tokens_c2 : tokens_hold N tokens 1 d (last + 3 * d) (fun _ j => c2 j).
  Hypothesis tokens_epsilon : tokens_hold N tokens 1 1 (last + 4 * d) (fun _ _ => eps).

  Lemma gives_epsilon e : closed e -> gives N tokens e (entry (block 1 1 (last + 4 * d)) (Int 0) (Int 0)) (fun _ => eps).
  Proof.
    intros _. destruct (closed_block N tokens blanks _ _ _ _ tokens_epsilon) as [_ [f [o [F [O H]]]]].
    destruct (H 0 0 ltac:(simpl; lia) ltac:(simpl; lia))%nat as [L V].
    eapply gives_ext; [|apply (gives_entry N tokens e _ _ _ o (fun _ => 0)%nat (fun _ => 0)%nat f);
      [now apply O|apply index_int|apply index_int|now apply F|intros; exact L]].
    intros q Q. exact V.
  Qed.

  Lemma norm_correct gain bias g b s M :
    tokens_hold N tokens 1 d gain (fun _ j => g j) -> tokens_hold N tokens 1 d bias (fun _ j => b j) ->
    holds N tokens closed (row_major s n d) M ->
    holds N tokens closed
      (row_major (layer_norm n d (entry (block 1 1 (last + 4 * d)) (Int 0) (Int 0))
                    (Some (block 1 d gain)) (Some (block 1 d bias)) s) n d)
      (fun i j => normed d eps g b (M i) j).
  Proof.
    intros G B H. apply (layer_norm_correct N tokens closed n d _ eps); try lia; auto using gives_epsilon.
    - split; [reflexivity|split; [reflexivity|now apply closed_block]].
    - split; [reflexivity|split; [reflexivity|now apply closed_block]].
  Qed.

  Lemma ffn_correct s M : holds N tokens closed (row_major s n d) M ->
    holds N tokens closed
      (row_major (feed_forward h act (row_major s n d) (block d d1 first) (block d1 d (first + d * d1 + d1))
         (Some (block 1 d1 (first + d * d1))) (Some (block 1 d (first + d * d1 + d1 + d1 * d)))) n d)
      (ffn act d d1 w1 w2 b1 b2 M).
  Proof.
    intros H. apply feed_forward_correct; simpl; auto; try lia.
    - split; [reflexivity|split; [reflexivity|now apply closed_block]].
    - split; [reflexivity|split; [reflexivity|now apply closed_block]].
    - now apply closed_block.
    - now apply closed_block.
  Qed.

  (** An encoder layer around any attention. *)
  Theorem encoder_layer_correct where_ :
    holds N tokens closed (row_major (encoder_layer where_ act attend h n d d1 first) n d)
      (layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2 T x).
  Proof.
    pose proof (closed_block N tokens blanks _ _ _ _ tokens_X : holds N tokens closed (row_major Tokens n d) x) as HX.
    unfold encoder_layer. fold last. destruct where_.
    - assert (HY : holds N tokens closed (row_major (layer_norm n d
          (entry (block 1 1 (last + 4 * d)) (Int 0) (Int 0)) (Some (block 1 d last))
          (Some (block 1 d (last + d))) (residual Tokens (attend (X n d)))) n d)
          (fun i j => normed d eps g1 c1 (fun t => x i t + T x i t) j)).
      { apply (norm_correct _ _ g1 c1 _ (fun i t => x i t + T x i t)); auto.
        apply add_correct; [exact HX|now apply attends]. }
      apply (norm_correct _ _ g2 c2 _ (fun i j => normed d eps g1 c1 (fun t => x i t + T x i t) j +
        ffn act d d1 w1 w2 b1 b2 (fun i j => normed d eps g1 c1 (fun t => x i t + T x i t) j) i j)); auto.
      apply add_correct; [exact HY|]. now apply ffn_correct.
    - pose proof (norm_correct _ _ g1 c1 _ x tokens_g1 tokens_c1 HX) as HN.
      assert (HY : holds N tokens closed (row_major (residual Tokens (attend (row_major (layer_norm n d
          (entry (block 1 1 (last + 4 * d)) (Int 0) (Int 0)) (Some (block 1 d last))
          (Some (block 1 d (last + d))) Tokens) n d))) n d)
          (fun i j => x i j + T (fun i j => normed d eps g1 c1 (x i) j) i j)).
      { apply add_correct; [exact HX|now apply attends]. }
      apply add_correct; [exact HY|]. apply ffn_correct.
      apply (norm_correct _ _ g2 c2 _ (fun i j => x i j + T (fun i j => normed d eps g1 c1 (x i) j) i j)); auto.
  Qed.
End Layer.

(** ** The paper's encoder: FFN(X + T(X)), where FFN(Y) = ReLU(Y W1) W2 *)
Definition paper_encoder d d1 (w1 w2 : nat -> nat -> R) (T : (nat -> nat -> R) -> nat -> nat -> R)
    (x : nat -> nat -> R) : nat -> nat -> R :=
  dot d1 (fun i t => Rmax (dot d (fun i j => x i j + T x i j) w1 i t) 0) w2.

(** H heads through W_O: Σ over the heads of softmax(X Aₜ Xᵀ) X Vₜ Oₜ. *)
Definition heads_attention n d dv H (a v o : nat -> nat -> nat -> R) (x : nat -> nat -> R) i j : R :=
  sum H (fun t => dot dv (attention n d x (a t) (v t)) (o t) i j).

Section Encoders.
  Variables (N n d : nat) (tokens : nat -> value) (x : nat -> nat -> R).
  Hypothesis sizes : (0 < n /\ 0 < d)%nat.
  Hypothesis room : (n * n <= N /\ n * d <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.

  Lemma one_attention_correct first a v :
    tokens_hold N tokens d d first a -> tokens_hold N tokens d d (first + d * d) v ->
    forall m M, rows m = n -> columns m = d -> holds N tokens closed m M ->
    holds N tokens closed (row_major (one_attention d first m) n d) (attention n d M a v).
  Proof.
    intros TA TV m M RN CD HM. unfold one_attention. rewrite RN.
    apply plain_head_correct; try lia; auto.
    - repeat split; apply closed_keeps.
    - now apply closed_block.
    - now apply closed_block.
  Qed.

  Lemma plain_encoder_correct h d1 d2 first attended T w1 w2 :
    (0 < d1 /\ 0 < d2)%nat -> (n * d1 <= N /\ n * d2 <= N)%nat ->
    tokens_hold N tokens d d1 first w1 -> tokens_hold N tokens d1 d2 (first + d * d1) w2 ->
    holds N tokens closed (row_major attended n d) (T x) ->
    holds N tokens closed (row_major (plain_encoder h n d d1 d2 first attended) n d2)
      (paper_encoder d d1 w1 w2 T x).
  Proof.
    intros P RM T1 T2 HT.
    eapply holds_ext; [|apply (feed_forward_correct N n d tokens ltac:(lia) h Relu
      (row_major (residual Tokens attended) n d)
      (block d d1 first) (block d1 d2 (first + d * d1)) None None
      (fun i j => x i j + T x i j) w1 w2 (fun _ => 0) (fun _ => 0) d1 d2)];
      simpl; auto; try lia.
    - intros i j I J. unfold ffn. rewrite Rplus_0_r. apply dot_ext; [|reflexivity].
      intros t L. simpl. now rewrite Rplus_0_r.
    - apply add_correct; [now apply (closed_block N tokens blanks n d 0 x)|exact HT].
    - now apply closed_block.
    - now apply closed_block.
  Qed.

  (** *** Corollary on encoders: FFN(X + softmax(X A Xᵀ) X V) *)
  Theorem encoder_simulates d1 d2 a v w1 w2 :
    let first := (n * d + d * d + d * d)%nat in
    (0 < d1 /\ 0 < d2)%nat -> (n * d1 <= N /\ n * d2 <= N)%nat ->
    tokens_hold N tokens d d (n * d) a -> tokens_hold N tokens d d (n * d + d * d) v ->
    tokens_hold N tokens d d1 first w1 -> tokens_hold N tokens d1 d2 (first + d * d1) w2 ->
    exists y, run N tokens (encoder n d d1 d2) = Some y /\
      forall i j, (i < n)%nat -> (j < d2)%nat ->
        y (i * d2 + j)%nat = Num (paper_encoder d d1 w1 w2 (fun M => attention n d M a v) x i j).
  Proof.
    intros first P RM TA TV T1 T2. apply run_of.
    apply (plain_encoder_correct 4 d1 d2 first _ (fun M => attention n d M a v)); auto.
    apply one_attention_correct; auto. now apply closed_block.
  Qed.

  (** *** Corollary H heads: FFN(X + Σ over the heads of softmax(X Aₜ Xᵀ) X Vₜ Oₜ) *)
  Theorem encoder_of_heads_simulates dv d1 d2 H (a v o : nat -> nat -> nat -> R) w1 w2 :
    let first := (n * d + H * (d * d) + H * (d * dv) + H * (dv * d))%nat in
    (0 < dv /\ 0 < d1 /\ 0 < d2 /\ 0 < H)%nat -> (n * dv <= N /\ n * d1 <= N /\ n * d2 <= N)%nat ->
    (forall t, (t < H)%nat -> tokens_hold N tokens d d (n * d + t * (d * d)) (a t)) ->
    (forall t, (t < H)%nat -> tokens_hold N tokens d dv (n * d + H * (d * d) + t * (d * dv)) (v t)) ->
    (forall t, (t < H)%nat ->
       tokens_hold N tokens dv d (n * d + H * (d * d) + H * (d * dv) + t * (dv * d)) (o t)) ->
    tokens_hold N tokens d d1 first w1 -> tokens_hold N tokens d1 d2 (first + d * d1) w2 ->
    exists y, run N tokens (encoder_of_heads n d dv d1 d2 H) = Some y /\
      forall i j, (i < n)%nat -> (j < d2)%nat ->
        y (i * d2 + j)%nat = Num (paper_encoder d d1 w1 w2 (heads_attention n d dv H a v o) x i j).
  Proof.
    intros first P RM TA TV TO T1 T2. apply run_of.
    apply (plain_encoder_correct 6 d1 d2 first _ (heads_attention n d dv H a v o)); auto; try lia.
    eapply holds_projected; eauto; try lia. now apply closed_block.
  Qed.
End Encoders.

Section Layers.
  Variables (N n d d1 : nat) (tokens : nat -> value) (act : activation_name).
  Variables (x w1 w2 : nat -> nat -> R) (b1 b2 g1 c1 g2 c2 : nat -> R) (eps : R).
  Hypothesis sizes : (0 < n /\ 0 < d /\ 0 < d1)%nat.
  Hypothesis room : (n * n <= N /\ n * d <= N /\ n * d1 <= N)%nat.
  Hypothesis blanks : numbers N tokens.
  Hypothesis tokens_X : tokens_hold N tokens n d 0 x.
  Hypothesis known : sound act.
  Hypothesis positive : 0 < eps.
  Definition tokens_hold_layer (first : nat) :=
    let last := (first + d * d1 + d1 + d1 * d + d)%nat in
    tokens_hold N tokens d d1 first w1 /\
    tokens_hold N tokens 1 d1 (first + d * d1) (fun _ j => b1 j) /\
    tokens_hold N tokens d1 d (first + d * d1 + d1) w2 /\
    tokens_hold N tokens 1 d (first + d * d1 + d1 + d1 * d) (fun _ j => b2 j) /\
    tokens_hold N tokens 1 d last (fun _ j => g1 j) /\
    tokens_hold N tokens 1 d (last + d) (fun _ j => c1 j) /\
    tokens_hold N tokens 1 d (last + 2 * d) (fun _ j => g2 j) /\
    tokens_hold N tokens 1 d (last + 3 * d) (fun _ j => c2 j) /\
    tokens_hold N tokens 1 1 (last + 4 * d) (fun _ _ => eps).

  (** *** One head, with biases, residual sums and layer norms, after or before each sublayer *)
  Theorem layer_of_one_head_simulates where_ a v :
    tokens_hold N tokens d d (n * d) a -> tokens_hold N tokens d d (n * d + d * d) v ->
    tokens_hold_layer (n * d + d * d + d * d) ->
    exists y, run N tokens (layer_of_one_head where_ act n d d1) = Some y /\
      forall i j, (i < n)%nat -> (j < d)%nat -> y (i * d + j)%nat =
        Num (layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2 (fun M => attention n d M a v) x i j).
  Proof.
    intros TA TV [T1 [T2 [T3 [T4 [T5 [T6 [T7 [T8 T9]]]]]]]]. apply run_of.
    apply encoder_layer_correct; auto; try lia. apply one_attention_correct; auto; lia.
  Qed.

  (** *** The same theorem with H heads through W_O *)
  Theorem layer_of_heads_simulates where_ dv H (a v o : nat -> nat -> nat -> R) :
    (0 < dv /\ 0 < H)%nat -> (n * dv <= N)%nat ->
    (forall t, (t < H)%nat -> tokens_hold N tokens d d (n * d + t * (d * d)) (a t)) ->
    (forall t, (t < H)%nat -> tokens_hold N tokens d dv (n * d + H * (d * d) + t * (d * dv)) (v t)) ->
    (forall t, (t < H)%nat ->
       tokens_hold N tokens dv d (n * d + H * (d * d) + H * (d * dv) + t * (dv * d)) (o t)) ->
    tokens_hold_layer (n * d + H * (d * d) + H * (d * dv) + H * (dv * d)) ->
    exists y, run N tokens (layer_of_heads where_ act n d dv d1 H) = Some y /\
      forall i j, (i < n)%nat -> (j < d)%nat -> y (i * d + j)%nat =
        Num (layer where_ act d d1 eps w1 w2 b1 b2 g1 c1 g2 c2 (heads_attention n d dv H a v o) x i j).
  Proof.
    intros P RM TA TV TO [T1 [T2 [T3 [T4 [T5 [T6 [T7 [T8 T9]]]]]]]]. apply run_of.
    apply encoder_layer_correct; auto; try lia.
    intros m M RN CD HM. eapply holds_projected; eauto; try lia.
  Qed.
End Layers.
